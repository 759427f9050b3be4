import type { FastifyReply, FastifyRequest } from 'fastify'
import { newTicket } from '../../plugins/upstream/index.ts'

/**
 * The names of the cookie that identifies a browser: the first for https, the second for http. The prefix `__Host-`
 * prevents other hosts of the same domain from setting the cookie.
 */
const [secureCookie, plainCookie] = ['__Host-tool-hub-login', 'tool-hub-login']

/** Returns the key that identifies the browser, from its cookie; undefined if the request has no such cookie. */
export const browserKeyOf = ({ cookies }: FastifyRequest): string | undefined =>
  cookies[secureCookie] ?? cookies[plainCookie]

/**
 * Returns the key that identifies the browser, and sets its cookie. A browser without a key gets a new one.
 * @param folder the path of the pages that read the cookie; it limits the cookie only over http
 * @param secure whether these pages have https URLs
 */
export function ensureBrowserKey (
  { cookies }: FastifyRequest, reply: FastifyReply, folder: string, secure: boolean
): string {
  const name = secure ? secureCookie : plainCookie
  const key = cookies[name] ?? newTicket()
  reply.setCookie(name, key, { path: secure ? '/' : folder, httpOnly: true, sameSite: 'lax', secure })
  return key
}
