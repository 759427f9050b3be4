import { createHmac, randomBytes, timingSafeEqual } from 'node:crypto'
import type { BrowserStates } from '../../../db/ports/login-states.ts'
import { isObject } from '../../../protocol/json.ts'
import { sha256 } from '../../base/secrets/index.ts'

/**
 * A login that waits to be started in a browser. The login link that a user gets contains a secret *ticket*, and leads
 * to a start page that names the server and the user, so that a person who opens another person's link sees whose login
 * it is (login CSRF; MCP 2025-11-25, Elicitation, "Phishing"). Only the browser that continues from this page can
 * complete the login, since the `state` of the authorization request then carries a tag that is derived from the
 * browser's cookie.
 */
export interface LoginStart {
  readonly server: string
  readonly holder: string
  /** The URL of the authorization request at the authorization server, without the browser's tag. */
  readonly url: string
}

/** Creates a ticket: 256 random bits in base64url. */
export const newTicket = (): string => randomBytes(32).toString('base64url')

/** Returns the key under which the state of a ticket is stored. */
export const hashOfTicket = (ticket: string): string => sha256(`upstream login start ${ticket}`)

/**
 * Stores the start of a login.
 * @param ticket the last segment of the login link
 * @param expiresAt in ms since the epoch
 */
export async function storeLoginStart (
  states: BrowserStates, ticket: string, start: LoginStart, expiresAt: number
): Promise<void> {
  await states.put(hashOfTicket(ticket), { kind: 'upstream-login', value: start, createdAt: Date.now() }, expiresAt)
}

/** Finds the start of a login by its ticket. @returns undefined if it is unknown or has expired */
export async function findLoginStart (states: BrowserStates, ticket: string): Promise<LoginStart | undefined> {
  const state = /^[\w-]{43}$/.test(ticket) ? await states.find(hashOfTicket(ticket)) : undefined
  return state?.kind === 'upstream-login' && isObject(state.value) ? state.value as unknown as LoginStart : undefined
}

/**
 * Returns a text that only a browser with this key in its cookie can present: for the link on a start page (`start`),
 * or for the `state` of an authorization request (`state`).
 */
const proofOf = (key: string, kind: 'start' | 'state', value: string): string =>
  createHmac('sha256', key).update(`${kind} ${value}`).digest('base64url')

function isProof (given: string, key: string | undefined, kind: 'start' | 'state', value: string): boolean {
  if (key === undefined || key.length < 43) return false
  const [one, other] = [Buffer.from(given), Buffer.from(proofOf(key, kind, value))]
  return one.length === other.length && timingSafeEqual(one, other)
}

/** Returns the token for the link on a start page. Only a browser with this key in its cookie can use it. */
export const startPageToken = (key: string, ticket: string): string => proofOf(key, 'start', ticket)
export const isStartPageToken = (token: string, key: string | undefined, ticket: string): boolean =>
  isProof(token, key, 'start', ticket)

/** Returns the URL of a login's authorization request, with the browser's tag in the `state`. */
export function withBrowserTag ({ url }: LoginStart, key: string): string {
  const tagged = new URL(url)
  const state = tagged.searchParams.get('state') ?? ''
  tagged.searchParams.set('state', `${state}.${proofOf(key, 'state', state)}`)
  return tagged.href
}

/**
 * Separates the `state` of an authorization response from the browser's tag.
 * @param text the `state` parameter of the response
 * @param key the key in the browser's cookie; undefined if it sent none
 * @returns undefined if the text does not have the form of a `state`; `isOwn`: whether this browser started the login
 */
export function parseTaggedState (
  text: string, key: string | undefined
): { readonly state: string, readonly isOwn: boolean } | undefined {
  const [, state, tag] = /^([\w-]{43})(?:\.([\w-]{43}))?$/.exec(text) ?? []
  return state === undefined ? undefined : { state, isOwn: tag !== undefined && isProof(tag, key, 'state', state) }
}
