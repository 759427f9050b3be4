import type { MaskSecret } from './mask-tokens.ts'

/** The dots that a mask of a secret begins with. */
export const maskDots = '••••'

/**
 * Whether a text is not a secret: it is empty, or a single variable (`${NAME}`, `${user.NAME}`, `${user_config.name}`).
 */
export const isEmptyOrVariable = (value: string): boolean =>
  value === '' || /^\$\{(user(_config)?\.[\w-]+|[A-Za-z_]\w*)\}$/.test(value)

const userVariable = /(\$\{user\.\w+\})/
const schemeName = /^(bearer|basic|token|apikey) +$/i

/**
 * Masks the parts of a text around its `${user.…}` variables, except the name of an authentication scheme.
 * @param maskPart masks a part between variables
 * @returns undefined if the text has no `${user.…}` variable
 */
export function maskAroundVariables (text: string, maskPart: (literal: string) => string): string | undefined {
  const parts = text.split(userVariable)
  if (parts.length === 1) return undefined
  return parts.map((part, at) => at % 2 === 1 || part === '' || schemeName.test(part) ? part : maskPart(part)).join('')
}

/** Masks a secret for display: dots, plus the last four characters if it has at least 12. Keeps variables. */
export function mask (secret: string): string {
  if (isEmptyOrVariable(secret)) return secret
  const around = maskAroundVariables(secret, mask)
  if (around !== undefined) return around
  return secret.length < 12 ? maskDots : `${maskDots}${/[!-~]{4}$/.exec(secret)?.[0] ?? ''}`
}

/** Whether a value is a text that contains a mask. */
export const containsMask = (value: unknown): boolean => typeof value === 'string' && value.includes(maskDots)

/** Matches names of members, arguments and query parameters whose values are secret. */
export const secretNamePattern =
  /(key|token|secret|passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|auth|credential|signature|verifier|cookie)/i

/** Masks the userinfo and the query values of a URL, and its fragment if that contains `=` or `@`. */
export function maskUrl (text: string, maskSecret: MaskSecret = mask): string {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  // Userinfo ends at the last @, since passwords may contain unencoded @ and /. A URL with several hosts, or with
  // `${HOST}`, cannot be parsed.
  const hasUser = parsed !== undefined && parsed.username + parsed.password !== ''
  let isMasked = false
  const shown = text.replace(userinfoOf(parsed, hasUser), (whole: string, head: string) => {
    isMasked = true
    return `${head}${maskUserInfo(whole.slice(head.length, -1), maskSecret)}@`
  })
  // Unusual forms with a user: `http:user:password@host`, `user:password@host`.
  if (!isMasked && (hasUser || (text.includes('@') && !text.includes('//')))) return maskSecret(text, 'url')
  const [, base = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(shown) ?? []
  const shownQuery = query === undefined
    ? ''
    : `?${query.split('&').map((each) => maskParameter(each, maskSecret)).join('&')}`
  const shownFragment = /[=@]/.test(fragment) ? `#${maskSecret(fragment.slice(1), 'fragment')}` : fragment
  return `${base}${shownQuery}${shownFragment}`
}

/** Masks userinfo as a whole. */
export const maskUserInfo = (userinfo: string, maskSecret: MaskSecret): string =>
  maskSecret === mask ? maskDots : maskSecret(userinfo, 'userinfo')

/**
 * The pattern of a URL up to the end of its userinfo; group 1 is the text before the userinfo.
 * @param parsed undefined if the URL cannot be parsed
 */
function userinfoOf (parsed: URL | undefined, hasUser: boolean): RegExp {
  if (parsed === undefined) return /^([^/]*\/\/).*@/s
  return hasUser ? /^([^/?#]*\/\/)[^?#]*@/ : /^([^/?#]*\/\/)[^/?#]*@/
}

function maskParameter (text: string, maskSecret: MaskSecret): string {
  const [, name, value] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) return `${name}=${maskSecret(value, name)}`
  return text === '' ? '' : maskSecret(text, 'query')
}
