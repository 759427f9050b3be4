import type { MaskSecret } from './tokens.ts'

export const maskDots = '••••'

/** Whether a text is never secret: empty, a variable (`${NAME}`, `${user.NAME}`), or `${user_config.name}`. */
export const isPlaceholder = (value: string): boolean =>
  value === '' || /^\$\{(user(_config)?\.[\w-]+|[A-Za-z_]\w*)\}$/.test(value)

const userVariable = /(\$\{user\.\w+\})/
const schemeName = /^(bearer|basic|token|apikey) +$/i

/**
 * Replaces the text around `${user.…}` variables, except the name of an authentication scheme, by the result of
 * `cover`.
 * @returns undefined if the text has no such variable
 */
export function maskAroundVariables (text: string, cover: (literal: string) => string): string | undefined {
  const parts = text.split(userVariable)
  if (parts.length === 1) return undefined
  return parts.map((part, at) => at % 2 === 1 || part === '' || schemeName.test(part) ? part : cover(part)).join('')
}

/** Masks a secret for display: dots, plus the last four characters if it has twelve or more. */
export function mask (secret: string): string {
  if (isPlaceholder(secret)) return secret
  const around = maskAroundVariables(secret, mask)
  if (around !== undefined) return around
  return secret.length < 12 ? maskDots : `${maskDots}${/[!-~]{4}$/.exec(secret)?.[0] ?? ''}`
}

/** Whether a value is a text that contains a mask. */
export const isMask = (value: unknown): boolean => typeof value === 'string' && value.includes(maskDots)

/** Names of members, arguments and query parameters whose values are secret. */
export const secretName =
  /(key|token|secret|passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|auth|credential|signature|verifier|cookie)/i

/** Masks the user, the password and the query values of a URL. */
export function maskUrl (text: string, cover: MaskSecret = mask): string {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  // Matches up to the last @, since passwords may contain unencoded @ and /; also if the URL cannot be parsed (several
  // hosts, `${HOST}`).
  const hasUser = parsed !== undefined && parsed.username + parsed.password !== ''
  let isCovered = false
  const shown = text.replace(userinfoOf(parsed, hasUser), (whole: string, head: string) => {
    isCovered = true
    return `${head}${maskUserInfo(whole.slice(head.length, -1), cover)}@`
  })
  // Unusual forms with a user: `http:user:password@host`, `user:password@host`.
  if (!isCovered && (hasUser || (text.includes('@') && !text.includes('//')))) return cover(text, 'url')
  const [, base = '', query, fragment = ''] = /^([^?#]*)(?:\?([^#]*))?(#.*)?$/s.exec(shown) ?? []
  const shownQuery = query === undefined
    ? ''
    : `?${query.split('&').map((each) => maskParameter(each, cover)).join('&')}`
  const shownFragment = /[=@]/.test(fragment) ? `#${cover(fragment.slice(1), 'fragment')}` : fragment
  return `${base}${shownQuery}${shownFragment}`
}

/** Masks a user and password completely. */
export const maskUserInfo = (userinfo: string, cover: MaskSecret): string =>
  cover === mask ? maskDots : cover(userinfo, 'userinfo')

/**
 * The pattern of a URL up to the end of its userinfo; group 1 is the text before the userinfo.
 * @param parsed undefined if the URL cannot be parsed
 */
function userinfoOf (parsed: URL | undefined, hasUser: boolean): RegExp {
  if (parsed === undefined) return /^([^/]*\/\/).*@/s
  return hasUser ? /^([^/?#]*\/\/)[^?#]*@/ : /^([^/?#]*\/\/)[^/?#]*@/
}

function maskParameter (text: string, cover: MaskSecret): string {
  const [, name, value] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) return `${name}=${cover(value, name)}`
  return text === '' ? '' : cover(text, 'query')
}
