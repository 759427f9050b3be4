import type { Cover } from './tokens.ts'

export const dots = '••••'

/**
 * Whether a text is no secret at any place: it is empty, a variable (`${NAME}`) or an option of a bundle
 * (`${user_config.name}`).
 */
export const isNoSecret = (value: string): boolean =>
  value === '' || /^\$\{(user_config\.[\w-]+|[A-Za-z_]\w*)\}$/.test(value)

/** A secret as it may be shown: dots, and the last four characters of a secret of twelve or more. */
export function mask (secret: string): string {
  if (isNoSecret(secret)) return secret
  return secret.length < 12 ? dots : `${dots}${/[!-~]{4}$/.exec(secret)?.[0] ?? ''}`
}

/** Whether a value is a text that contains a mask. */
export const isMask = (value: unknown): boolean => typeof value === 'string' && value.includes(dots)

/** Names of members, arguments and query parameters with secret values. */
export const secretName =
  /(key|token|secret|passw|passphrase|(?<![a-z])pass(?![a-z])|pwd|auth|credential|signature|verifier|cookie)/i

/** A URL as it may be shown: user, password and the values of its query are masked. */
export function maskUrl (text: string, cover: Cover = mask): string {
  const parsed = URL.canParse(text) ? new URL(text) : undefined
  // Up to the last @, since passwords may contain @ and / without encoding; also where a URL cannot be parsed (several
  // hosts, `${HOST}`).
  const hasUser = parsed !== undefined && parsed.username + parsed.password !== ''
  let isCovered = false
  const shown = text.replace(userinfoOf(parsed, hasUser), (whole: string, head: string) => {
    isCovered = true
    return `${head}${coverUser(whole.slice(head.length, -1), cover)}@`
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

/** Covers a user and password completely. */
export const coverUser = (userinfo: string, cover: Cover): string => cover === mask ? dots : cover(userinfo, 'userinfo')

/**
 * The pattern of a URL up to its userinfo, with the text before it as group 1.
 * @param parsed undefined: the URL cannot be parsed
 */
function userinfoOf (parsed: URL | undefined, hasUser: boolean): RegExp {
  if (parsed === undefined) return /^([^/]*\/\/).*@/s
  return hasUser ? /^([^/?#]*\/\/)[^?#]*@/ : /^([^/?#]*\/\/)[^/?#]*@/
}

function maskParameter (text: string, cover: Cover): string {
  const [, name, value] = /^([^=]*)=(.*)$/s.exec(text) ?? []
  if (name !== undefined && value !== undefined) return `${name}=${cover(value, name)}`
  return text === '' ? '' : cover(text, 'query')
}
