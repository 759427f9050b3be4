import type { IncomingMessage, ServerResponse } from 'node:http'

/** Has a handler of the SDK's second line answer a request. @param text its body */
export async function answerBy (
  handler: { fetch: (request: Request) => Promise<Response> }, request: IncomingMessage, response: ServerResponse, text: string
): Promise<void> {
  const left = new AbortController()
  response.once('close', () => { left.abort(new Error('the client has gone')) })
  const headers = new Headers()
  for (const [name, value] of Object.entries(request.headers)) headers.set(name, String(value))
  const answer = await handler.fetch(new Request(`http://${request.headers.host}${request.url}`, {
    method: request.method, headers, body: text === '' ? undefined : text, signal: left.signal
  }))
  response.writeHead(answer.status, Object.fromEntries(answer.headers))
  response.flushHeaders()
  for await (const chunk of answer.body ?? []) response.write(chunk)
  response.end()
}

/** The body of a request. */
export async function bodyOf (request: IncomingMessage): Promise<string> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return Buffer.concat(chunks).toString()
}
