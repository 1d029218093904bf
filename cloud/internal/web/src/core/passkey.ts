// Passkeys (Web Authentication) in the JSON form of the service. Browsers older than 2024 lack the conversions.

interface Descriptor {
  id: string;
  type: "public-key";
}

/** Options as the service sends them. */
export interface PasskeyOptions {
  publicKey: Record<string, unknown> & {
    challenge: string;
    user?: { id: string; name: string; displayName: string };
    excludeCredentials?: Descriptor[];
    allowCredentials?: Descriptor[];
  };
}

const bytes = (text: string): ArrayBuffer =>
  Uint8Array.from(atob(text.replace(/-/g, "+").replace(/_/g, "/")), (c) => c.charCodeAt(0)).buffer;

const text = (buffer: ArrayBuffer): string =>
  btoa(String.fromCharCode(...new Uint8Array(buffer)))
    .replace(/\+/g, "-")
    .replace(/\//g, "_")
    .replace(/=+$/, "");

const known = (list: Descriptor[] = []) => list.map((d) => ({ ...d, id: bytes(d.id) }));

/** Whether the browser has passkeys on this page. An IP address has none. */
export const passkeysWork = (): boolean =>
  isSecureContext && "PublicKeyCredential" in window && /[a-z]/.test(location.hostname);

/** The answer of the authenticator in JSON. fields are those of its kind of response. */
const answer = ({ id, rawId, type, response }: PublicKeyCredential, fields: Record<string, unknown>) => ({
  id,
  rawId: text(rawId),
  type,
  clientExtensionResults: {},
  response: { clientDataJSON: text(response.clientDataJSON), ...fields },
});

/** Makes a passkey. Resolves to the RegistrationResponseJSON. */
export async function makePasskey({ publicKey }: PasskeyOptions): Promise<unknown> {
  const user = publicKey.user ?? { id: "", name: "", displayName: "" };
  const made = (await navigator.credentials.create({
    publicKey: {
      ...publicKey,
      challenge: bytes(publicKey.challenge),
      user: { ...user, id: bytes(user.id) },
      excludeCredentials: known(publicKey.excludeCredentials),
    } as unknown as PublicKeyCredentialCreationOptions,
  })) as PublicKeyCredential;
  const response = made.response as AuthenticatorAttestationResponse;
  return answer(made, {
    attestationObject: text(response.attestationObject),
    transports: response.getTransports?.() ?? [],
  });
}

/** Uses a passkey. Resolves to the AuthenticationResponseJSON. */
export async function usePasskey({ publicKey }: PasskeyOptions): Promise<unknown> {
  const used = (await navigator.credentials.get({
    publicKey: {
      ...publicKey,
      challenge: bytes(publicKey.challenge),
      allowCredentials: known(publicKey.allowCredentials),
    } as unknown as PublicKeyCredentialRequestOptions,
  })) as PublicKeyCredential;
  const response = used.response as AuthenticatorAssertionResponse;
  return answer(used, {
    authenticatorData: text(response.authenticatorData),
    signature: text(response.signature),
    userHandle: response.userHandle ? text(response.userHandle) : null,
  });
}
