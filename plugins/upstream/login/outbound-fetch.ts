import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { limits } from '../../limits/index.ts'
import type { Outbound, Reach } from '../../outbound/outbound.ts'

/** Statuses whose answers have no body. */
const bodiless = new Set([204, 205, 304])

/**
 * A `fetch` for the SDK's OAuth functions, through the outbound client: addresses that an upstream names are checked by the rules for that
 * server's owner. Each request has a timeout, and each answer a bound.
 * @param onStatus told the status of each answer
 */
export function outboundFetch (outbound: Outbound, reach: Reach, onStatus: (status: number) => void = () => {}): FetchLike {
  return async (url, init = {}) => {
    const { method = 'GET', body } = init
    const answer = await outbound.fetch(url, {
      ...reach,
      method: method === 'POST' ? 'POST' : 'GET',
      headers: Object.fromEntries(new Headers(init.headers)),
      body: body === undefined || body === null ? undefined : bodyText(body),
      maxSize: limits.login.document,
      timeout: limits.login.time,
      answersRedirects: true
    })
    onStatus(answer.status)
    const type = answer.headers['content-type']
    return new Response(bodiless.has(answer.status) ? null : new Uint8Array(answer.body), {
      status: answer.status,
      headers: type === undefined ? {} : { 'content-type': type }
    })
  }
}

/** The bodies that the SDK sends: forms, and JSON. */
function bodyText (body: unknown): string {
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('expected a text or a form')
}
