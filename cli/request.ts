import { request } from 'node:http'
import { text } from 'node:stream/consumers'

/** An HTTP response. */
export interface GatewayResponse { readonly status: number, readonly text: string }

interface GatewayRequestOptions {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

/**
 * Sends one request to the gateway on this machine. It does not use `fetch`, whose first call takes longer than most
 * commands.
 * @throws Error whose cause is the system's error, as with `fetch`
 */
export async function requestLocalGateway (
  url: string, { body, ...options }: GatewayRequestOptions = {}
): Promise<GatewayResponse> {
  try {
    return await new Promise<GatewayResponse>((resolve, reject) => {
      const asked = request(url, { ...options, agent: false }, (answer) => {
        text(answer).then((whole) => { resolve({ status: answer.statusCode ?? 0, text: whole }) }, reject)
      })
      asked.once('error', reject)
      asked.end(body)
    })
  } catch (cause) {
    throw new Error(`${url} does not answer`, { cause })
  }
}
