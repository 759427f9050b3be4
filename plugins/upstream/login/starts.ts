import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { LoginStates } from '../../../db/ports/login-states.ts'
import { isObject } from '../../../protocol/json.ts'
import { sha256 } from '../../base/secrets/index.ts'

/**
 * The start of a login in a browser. Its URL, which contains a secret *ticket*, leads to a page that names server and
 * user. Only the browser that continues from there can complete the login, since the `state` carries a tag derived from
 * that browser's cookie. A person who opens another person's URL sees on the page whose login it is (login CSRF; MCP
 * 2025-11-25, Elicitation, "Phishing").
 */
export interface LoginStart {
  readonly server: string
  readonly holder: string
  /** The URL of the authorization request. */
  readonly url: string
}

/** A new ticket: 256 random bits. */
export const newTicket = (): string => randomBytes(32).toString('base64url')

/** The key under which the start of a login is stored. */
export const hashOfTicket = (ticket: string): string => sha256(`upstream login start ${ticket}`)

/** Stores the start of a login. @param ticket the last segment of its URL */
export async function storeLoginStart (
  states: LoginStates, ticket: string, start: LoginStart, expiresAt: number
): Promise<void> {
  await states.put(hashOfTicket(ticket), { kind: 'upstream-login', value: start, createdAt: Date.now() }, expiresAt)
}

/** Finds the start of a login by its ticket. @returns undefined if it is unknown or has expired */
export async function findLoginStart (states: LoginStates, ticket: string): Promise<LoginStart | undefined> {
  const state = /^[\w-]{43}$/.test(ticket) ? await states.find(hashOfTicket(ticket)) : undefined
  return state?.kind === 'upstream-login' && isObject(state.value) ? state.value as unknown as LoginStart : undefined
}

/** Proves that a browser with this key has seen a page (`start`), or was redirected with a request (`state`). */
const proofOf = (key: string, kind: 'start' | 'state', value: string): string =>
  createHmac('sha256', key).update(`${kind} ${value}`).digest('base64url')

function isProof (given: string, key: string | undefined, kind: 'start' | 'state', value: string): boolean {
  if (key === undefined || key.length < 43) return false
  const [one, other] = [Buffer.from(given), Buffer.from(proofOf(key, kind, value))]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** The token in the link on a start page, which only the browser with this key in its cookie can present. */
export const startPageToken = (key: string, ticket: string): string => proofOf(key, 'start', ticket)
export const isStartPageToken = (token: string, key: string | undefined, ticket: string): boolean =>
  isProof(token, key, 'start', ticket)

/** The authorization request of a start, with the browser's tag in its `state`. */
export function withBrowserTag ({ url }: LoginStart, key: string): string {
  const tagged = new URL(url)
  const state = tagged.searchParams.get('state') ?? ''
  tagged.searchParams.set('state', `${state}.${proofOf(key, 'state', state)}`)
  return tagged.href
}

/**
 * The `state` of a response without its tag.
 * @returns undefined if it is not a `state` of this gateway; `isOwn` is false if another browser started the login
 */
export function removeBrowserTag (
  text: string, key: string | undefined
): { readonly state: string, readonly isOwn: boolean } | undefined {
  const [, state, tag] = /^([\w-]{43})(?:\.([\w-]{43}))?$/.exec(text) ?? []
  return state === undefined ? undefined : { state, isOwn: tag !== undefined && isProof(tag, key, 'state', state) }
}
