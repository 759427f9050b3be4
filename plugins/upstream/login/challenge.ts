/** What the header `WWW-Authenticate` of an upstream says (RFC 6750 §3, RFC 9728 §5.1). */
export interface BearerChallenge {
  /** The address of the protected resource metadata. */
  readonly resourceMetadata?: URL
  /** The scopes that the request needs. */
  readonly scopes?: readonly string[]
}

const parameter = (text: string, name: string): string | undefined => {
  const [, quoted, plain] = new RegExp(`(?:^|[\\s,])${name}\\s*=\\s*(?:"((?:[^"\\\\]|\\\\.)*)"|([^\\s,"]+))`, 'i').exec(text) ?? []
  return quoted?.replace(/\\(.)/g, '$1') ?? plain
}

/** @param header may hold several challenges; undefined: there is none */
export function parseChallenge (header: string | undefined): BearerChallenge {
  const text = /(?:^|[\s,])bearer\s+(.*)$/is.exec(header?.slice(0, 8_192) ?? '')?.[1]
  if (text === undefined) return {}
  const address = parameter(text, 'resource_metadata')
  const scope = parameter(text, 'scope')
  return {
    ...(address !== undefined && URL.canParse(address) ? { resourceMetadata: new URL(address) } : {}),
    ...(scope === undefined ? {} : { scopes: scopesIn(scope) })
  }
}

/** Scopes in a text, without repetition (RFC 6749 §3.3). */
export const scopesIn = (text: string | undefined): string[] => [...new Set((text ?? '').split(' ').filter((each) => each !== ''))]
