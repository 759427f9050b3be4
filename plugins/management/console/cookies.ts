import '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { parseJsonObject } from '../../../protocol/json.ts'

/**
 * The names of the console's cookies. Browsers send them only to paths of the console, and never with a cross-site POST
 * (SameSite=Lax).
 */
export const consoleCookieNames = {
  session: 'tool-hub-console',
  csrf: 'tool-hub-console-csrf',
  notice: 'tool-hub-console-notice',
  theme: 'tool-hub-console-theme'
} as const

/** A message about the result of a form, for the page that follows. */
export interface Notice { readonly kind: 'done' | 'warning' | 'error', readonly text: string }

const themes = ['auto', 'light', 'dark'] as const
type Theme = typeof themes[number]
export const isTheme = (text: unknown): text is Theme => themes.some((theme) => theme === text)
/** Returns the theme that the browser's cookie selects. */
export const themeOf = ({ cookies: { [consoleCookieNames.theme]: theme } }: FastifyRequest): Theme =>
  isTheme(theme) ? theme : 'auto'

/** Sets the cookie of the theme. @param path the path of the console */
export function setThemeCookie (reply: FastifyReply, path: string, theme: Theme): void {
  reply.setCookie(consoleCookieNames.theme, theme, { path, httpOnly: true, sameSite: 'lax', maxAge: 365 * 24 * 3_600 })
}

/** Max length of the text of a notice, in characters: browsers accept cookies of at most 4 KB. */
const maxNotice = 1_000
/** Max age of the cookie of a notice, in seconds. */
const noticeLifetime = 60

/** Stores a notice for the next page in a cookie. @param path the path of the console */
export function setNoticeCookie (reply: FastifyReply, path: string, { kind, text }: Notice): void {
  const value = Buffer.from(JSON.stringify({ kind, text: text.slice(0, maxNotice) })).toString('base64url')
  reply.setCookie(consoleCookieNames.notice, value, { path, httpOnly: true, sameSite: 'lax', maxAge: noticeLifetime })
}

/** Returns the stored notice, and deletes the cookie. @param path the path of the console */
export function takeNotice (reply: FastifyReply, path: string): Notice | undefined {
  const value = reply.request.cookies[consoleCookieNames.notice]
  if (value === undefined) return undefined
  reply.clearCookie(consoleCookieNames.notice, { path })
  return noticeOf(Buffer.from(value, 'base64url').toString())
}

function noticeOf (text: string): Notice | undefined {
  const notice = parseJsonObject(text)
  if (typeof notice?.text !== 'string') return undefined
  const kind = notice.kind === 'done' || notice.kind === 'warning' ? notice.kind : 'error'
  return { kind, text: notice.text }
}
