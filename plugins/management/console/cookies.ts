import '@fastify/cookie'
import type { FastifyReply, FastifyRequest } from 'fastify'
import { isObject } from '../../../protocol/json.ts'

/**
 * The cookies of the console. Browsers send them to the console's paths only, and never with a cross-site POST
 * (SameSite=Lax).
 */
export const cookies = {
  session: 'tool-hub-console',
  csrf: 'tool-hub-console-csrf',
  notice: 'tool-hub-console-notice',
  theme: 'tool-hub-console-theme'
} as const

/** A message about the result of the preceding form. */
export interface Notice { readonly kind: 'done' | 'warning' | 'error', readonly text: string }

const themes = ['auto', 'light', 'dark'] as const
type Theme = typeof themes[number]
export const isTheme = (text: unknown): text is Theme => themes.some((theme) => theme === text)
/** The theme that the browser's cookie selects. */
export const themeOf = ({ cookies: { [cookies.theme]: theme } }: FastifyRequest): Theme =>
  isTheme(theme) ? theme : 'auto'

/** @param path of the console */
export function keepTheme (reply: FastifyReply, path: string, theme: Theme): void {
  reply.setCookie(cookies.theme, theme, { path, httpOnly: true, sameSite: 'lax', maxAge: 365 * 24 * 3_600 })
}

/** Max length of the text of a notice, in characters: browsers keep cookies of 4 KB. */
const maxNotice = 1_000
/** Max age of a notice, in s. */
const noticeTime = 60

/** Keeps a notice for the next page. @param path of the console */
export function leaveNotice (reply: FastifyReply, path: string, { kind, text }: Notice): void {
  const value = Buffer.from(JSON.stringify({ kind, text: text.slice(0, maxNotice) })).toString('base64url')
  reply.setCookie(cookies.notice, value, { path, httpOnly: true, sameSite: 'lax', maxAge: noticeTime })
}

/** Returns and deletes the notice of the preceding form. */
export function takeNotice (reply: FastifyReply, path: string): Notice | undefined {
  const value = reply.request.cookies[cookies.notice]
  if (value === undefined) return undefined
  reply.clearCookie(cookies.notice, { path })
  return noticeOf(Buffer.from(value, 'base64url').toString())
}

function noticeOf (text: string): Notice | undefined {
  try {
    const notice: unknown = JSON.parse(text)
    if (!isObject(notice) || typeof notice.text !== 'string') return undefined
    const kind = notice.kind === 'done' || notice.kind === 'warning' ? notice.kind : 'error'
    return { kind, text: notice.text }
  } catch {
    return undefined
  }
}
