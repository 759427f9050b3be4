import type { FastifyReply, FastifyRequest } from 'fastify'
import { newTicket } from '../../plugins/upstream/index.ts'

/**
 * The names of the cookie that identifies a browser, for https and for http. The prefix `__Host-` keeps other hosts of
 * the same domain from setting it.
 */
const [secureCookie, plainCookie] = ['__Host-tool-hub-login', 'tool-hub-login']

/** Returns the value of a browser's cookie; undefined if it has none. */
export const browserKeyOf = ({ cookies }: FastifyRequest): string | undefined =>
  cookies[secureCookie] ?? cookies[plainCookie]

/**
 * Identifies a browser by a cookie, which is set if it is missing.
 * @param folder the path of the pages that read it
 * @param secure whether they have https URLs
 */
export function ensureBrowserKey (
  { cookies }: FastifyRequest, reply: FastifyReply, folder: string, secure: boolean
): string {
  const name = secure ? secureCookie : plainCookie
  const key = cookies[name] ?? newTicket()
  reply.setCookie(name, key, { path: secure ? '/' : folder, httpOnly: true, sameSite: 'lax', secure })
  return key
}
