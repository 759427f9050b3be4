import { request } from 'node:http'
import { text } from 'node:stream/consumers'

/** An HTTP response. */
export interface Answer { readonly status: number, readonly text: string }

interface Asked {
  readonly method?: string
  readonly headers?: Readonly<Record<string, string>>
  readonly body?: string
  readonly signal?: AbortSignal
}

/**
 * Sends one request to the gateway on this machine. It does not use `fetch`, whose first call takes longer than a whole
 * command.
 * @throws like `fetch`: an Error whose cause is the system's error
 */
export async function ask (url: string, { body, ...options }: Asked = {}): Promise<Answer> {
  try {
    return await new Promise<Answer>((resolve, reject) => {
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
