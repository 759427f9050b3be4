import { request } from 'node:http'
import { text } from 'node:stream/consumers'

/** A response of the gateway, with its body as text. `etag`: its ETag header. */
export interface GatewayResponse { readonly status: number, readonly text: string, readonly etag?: string }

interface GatewayRequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

/**
 * Sends a request to the gateway on this machine. `fetch` is not used, since its first call takes longer than most
 * commands.
 * @throws Error whose cause is the system's error, as with `fetch`
 */
export async function requestLocalGateway (
  url: string, { body, ...options }: GatewayRequestOptions = {}
): Promise<GatewayResponse> {
  try {
    return await new Promise<GatewayResponse>((resolve, reject) => {
      const outgoing = request(url, { ...options, agent: false }, (response) => {
        const { statusCode: status = 0, headers: { etag } } = response
        text(response).then((whole) => { resolve({ status, text: whole, etag }) }, reject)
      })
      outgoing.once('error', reject)
      outgoing.end(body)
    })
  } catch (cause) {
    throw new Error(`${url} does not answer`, { cause })
  }
}
