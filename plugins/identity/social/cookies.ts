import type { IncomingHttpHeaders } from 'node:http'
import { limits } from '../../base/limits/index.ts'

/** The names and attributes of cookies, which follow from where browsers find the gateway. */
export interface CookieNames {
  readonly session: string
  readonly state: string
  readonly path: string
  readonly isSecure: boolean
}

const session = 'tool-hub-social'
const state = 'tool-hub-social-state'

/**
 * The cookies for a public address. With https and without a path they are bound to the host (`__Host-`), so that no other host of the
 * domain can set them.
 * @param base with the base path
 */
export function cookieNames (base: string): CookieNames {
  const { protocol, pathname } = new URL(base)
  const path = pathname.replace(/\/$/, '') || '/'
  const isSecure = protocol === 'https:'
  const prefix = !isSecure ? '' : path === '/' ? '__Host-' : '__Secure-'
  return { session: `${prefix}${session}`, state: `${prefix}${state}`, path, isSecure }
}

/** Whether a request may carry the cookie of a social login. */
export const mayHaveSession = ({ cookie }: IncomingHttpHeaders): boolean =>
  cookie !== undefined && cookie.length <= limits.social.cookies && cookie.includes(`${session}=`)

/** The cookies of these names in a `Cookie` header, and no others. Of a cookie that is sent twice, all are left out. */
export function onlyCookies ({ cookie = '' }: IncomingHttpHeaders, names: readonly string[]): string {
  if (cookie.length > limits.social.cookies) return ''
  const pairs = cookie.split(';').map((pair) => pair.trim())
  return names.flatMap((name) => {
    const found = pairs.filter((pair) => pair.startsWith(`${name}=`))
    return found.length === 1 ? found : []
  }).join('; ')
}
