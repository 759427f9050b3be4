import { errors as failures } from 'oidc-provider'
import { isObject, withoutEmptyMembers } from '../../../../protocol/json.ts'
import type { Outbound } from '../../../base/outbound/index.ts'
import { OAuthError } from '../../../base/errors/index.ts'
import { readRedirectUris, scopeOf } from '../client-metadata.ts'
import type { OAuthSettings } from '../settings.ts'
import { identityLimits } from '../../limits.ts'

/** Members without a meaning here, whose values oidc-provider would check. Registration ignores them as well. */
const ignoredMembers = [
  'sector_identifier_uri', 'jwks_uri', 'jwks', 'response_modes', 'id_token_signed_response_alg', 'subject_type',
  'default_acr_values', 'default_max_age', 'require_auth_time', 'initiate_login_uri'
]

/**
 * Changes the metadata of a Client ID Metadata Document in place, so that it describes a native client without keys,
 * and reads the scope and the redirect URIs by the rules for registered clients. Does nothing if `client_id` is not an
 * https URL.
 * @throws InvalidClientMetadata
 */
export function adaptClientMetadataDocument (metadata: Record<string, unknown>, settings: OAuthSettings): void {
  if (typeof metadata.client_id !== 'string' || !metadata.client_id.startsWith('https://')) return
  metadata.application_type = 'native'
  for (const name of ignoredMembers) metadata[name] = undefined
  // The library's default method requires a secret, which a client described by a document cannot have.
  if (metadata.token_endpoint_auth_method === 'client_secret_basic') metadata.token_endpoint_auth_method = 'none'
  try {
    readRedirectUris(metadata.redirect_uris)
    metadata.scope = scopeOf(metadata, settings)
  } catch (error) {
    throw error instanceof OAuthError ? new failures.InvalidClientMetadata(error.message) : error
  }
}

/** Whether a media type is JSON (draft-ietf-oauth-client-id-metadata-document, section 4.1; RFC 6839, section 3.1). */
const isJson = (type: string | undefined): boolean =>
  /^application\/(?:[\w.!#$&^+-]+\+)?json *(?:;|$)/i.test(type?.trim() ?? '')

/**
 * Fetches a Client ID Metadata Document. The URL is untrusted, so it must lead to a public address. Redirects are not
 * followed, since the URL is the identity of the client.
 * @throws Error if a response with status 200 is not JSON, and the errors of `Outbound.fetch`
 */
export async function fetchClientMetadataDocument (outbound: Pick<Outbound, 'fetch'>, url: string): Promise<Response> {
  const options = {
    trusted: false, owner: 'clients of the authorization server', maxSize: identityLimits.oauth.document, timeout: 5_000
  }
  const { status, headers, body } = await outbound.fetch(url, {
    ...options,
    headers: { accept: 'application/json' },
    returnsRedirects: 'all'
  })
  if (status === 200 && !isJson(headers['content-type'])) {
    throw new Error('the answer is not of the media type application/json')
  }
  const kept = ['content-type', 'cache-control', 'expires'].flatMap((name): Array<[string, string]> => {
    const value = headers[name]
    return typeof value === 'string' ? [[name, value]] : []
  })
  return new Response(status === 200 ? withoutNullMembers(body) : new Uint8Array(body), { status, headers: kept })
}

/**
 * Returns the text of a JSON object without members that are null. Returns other text unchanged; oidc-provider rejects
 * it.
 */
function withoutNullMembers (body: Buffer): string {
  const text = new TextDecoder().decode(body)
  try {
    const document: unknown = JSON.parse(text)
    return isObject(document) ? JSON.stringify(withoutEmptyMembers(document)) : text
  } catch {
    return text
  }
}
