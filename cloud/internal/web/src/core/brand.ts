// The company's name and logo, which the document carries.

const { ko, en, logo } = document.body.dataset;

/** The name in each language. */
export const brandKo = ko || "열다";
export const brandEn = en || "Yeolda";

/** The address of the logo; undefined: the shipped mark. */
export const brandLogo = logo;
