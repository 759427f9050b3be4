// The OAuth client of the MCP SDK. It is loaded at the first login, since most gateways never need it.

import type * as auth from '@modelcontextprotocol/sdk/client/auth.js'
import type * as utils from '@modelcontextprotocol/sdk/shared/auth-utils.js'
import type { FetchLike } from '@modelcontextprotocol/sdk/shared/transport.js'
import { UpstreamError } from '../../../protocol/errors.ts'
import { parseJsonObject, withoutEmptyMembers } from '../../../protocol/json.ts'
import { loadOnce } from '../../base/config/index.ts'
import type { Outbound, OutboundAccess } from '../../base/outbound/index.ts'
import { upstreamLimits } from '../limits.ts'

type Sdk = typeof auth & typeof utils

/** Loads the SDK's OAuth client, once. */
export const loadSdk = loadOnce<Sdk>(async () => {
  const [auth, utils] = await Promise.all([
    import('@modelcontextprotocol/sdk/client/auth.js'),
    import('@modelcontextprotocol/sdk/shared/auth-utils.js')
  ])
  return { ...auth, ...utils }
})

/** The statuses with which a `Response` must not have a body. */
const bodilessStatuses = new Set([204, 205, 304])

/** Which outbound access a request to an authorization server gets. */
interface LoginAccess {
  /** The server's access, for addresses in its config. */
  readonly reach: OutboundAccess
  /** Returns the origins of the addresses in the config: of the server and of its authorization server. */
  readonly origins: () => ReadonlySet<string>
}

const unknownOriginHint = '. The server itself provides this address: if it is correct, set "oauth.issuer" to its ' +
  'authorization server'

/**
 * Creates a `fetch` for the SDK's OAuth functions that uses the gateway's outbound client. Requests to origins in the
 * server's config get the server's access; origins from the server's metadata are not trusted. Requests have a timeout,
 * and responses a max size. In JSON and form responses, empty members are omitted, members that the SDK requires are
 * added, and errors with status 200 get the status 400.
 * @param onStatus called with the status of each response
 */
export function outboundFetch (
  outbound: Outbound,
  { reach, origins }: LoginAccess,
  onStatus: (status: number) => void = () => {}
): FetchLike {
  return async (url, init = {}) => {
    const { method = 'GET', body } = init
    const isKnown = !reach.trusted || origins().has(new URL(url).origin)
    const { status, headers, body: bytes } = await outbound.fetch(url, {
      ...isKnown ? reach : { trusted: false, owner: reach.owner },
      method: method === 'POST' ? 'POST' : 'GET',
      headers: Object.fromEntries(new Headers(init.headers)),
      body: body === undefined || body === null ? undefined : bodyText(body),
      maxSize: upstreamLimits.login.document,
      timeout: upstreamLimits.login.time,
      returnsRedirects: true
    }).catch((error: unknown) => {
      throw !isKnown && error instanceof UpstreamError && error.fault === 'unreachable'
        ? error.withDetail(unknownOriginHint)
        : error
    })
    onStatus(status)
    const type = headers['content-type']
    if (bodilessStatuses.has(status)) return new Response(null, { status })
    const document = documentIn(type, bytes)
    if (document === undefined) {
      return new Response(
        new Uint8Array(bytes), { status, headers: type === undefined ? {} : { 'content-type': type } }
      )
    }
    // Some servers, such as GitHub, return token endpoint errors with status 200.
    const isError =
      status === 200 && method === 'POST' && typeof document.error === 'string' && document.access_token === undefined
    return Response.json(withRequiredMembers(url, document), { status: isError ? 400 : status })
  }
}

/**
 * Adds members that the SDK requires but the gateway does not use, and that some authorization servers leave out: the
 * type of a token, and members of OpenID Connect metadata (some servers publish RFC 8414 metadata at that path).
 */
function withRequiredMembers (url: string | URL, document: Record<string, unknown>): Record<string, unknown> {
  if (typeof document.access_token === 'string') return { token_type: 'Bearer', ...document }
  if (!new URL(url).pathname.includes('/.well-known/openid-configuration')) return document
  return {
    jwks_uri: document.issuer, subject_types_supported: [], id_token_signing_alg_values_supported: [], ...document
  }
}

/** Parses a JSON or form response into an object without empty members; undefined if it is neither. */
function documentIn (type: string | undefined, bytes: Buffer): Record<string, unknown> | undefined {
  const text = new TextDecoder().decode(bytes)
  if (/^application\/x-www-form-urlencoded *(?:;|$)/i.test(type?.trim() ?? '')) {
    return withoutEmptyMembers(Object.fromEntries(new URLSearchParams(text)))
  }
  const document = parseJsonObject(text)
  return document && withoutEmptyMembers(document)
}

/** Converts a request body of the SDK, which is a form or JSON text, to text. */
function bodyText (body: unknown): string {
  if (typeof body === 'string') return body
  if (body instanceof URLSearchParams) return body.toString()
  throw new TypeError('expected a text or a form')
}
