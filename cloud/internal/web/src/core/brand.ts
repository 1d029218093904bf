// The company's name and logo, which the document carries.

const content = (name: string): string | undefined =>
  document.querySelector<HTMLMetaElement>(`meta[name=brand-${name}]`)?.content || undefined;

/** The name in each language. */
export const brandKo = content("ko") ?? "열다";
export const brandEn = content("en") ?? "Yeolda";

/** The address of the logo; undefined: the shipped mark. */
export const brandLogo = content("logo");
