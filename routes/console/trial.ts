import type { FastifyInstance, FastifyReply } from 'fastify'
import type { ProgressOptions, PageData, Progress } from '../../plugins/management/index.ts'
import { abortSignalOf } from '../caller.ts'
import type { Visit } from './page.ts'

/**
 * An MCP request to the route of a single server. `params`: as JSON text. `tool`: the definition of the called tool,
 * which may require headers that repeat arguments (`x-mcp-header`).
 */
export interface TrialRequest {
  readonly server: string, readonly method: string, readonly params: string, readonly tool?: unknown
}

/** Sends an MCP request as the signed-in user, and responds with a page that shows the result. */
export async function runTrialAndShowResult (
  app: FastifyInstance, visit: Visit, { server, method, params, tool }: TrialRequest, page: string, data: PageData
): Promise<void> {
  const { kit } = app
  await showWithProgress(app, visit, page, async (follow) => {
    const begun = performance.now()
    const path = `/mcp/${encodeURIComponent(server)}`
    const { result, problem } = await kit.mcp.askWithProgress(visit.request, path, method, params, { tool, follow })
    const ms = performance.now() - begun
    const more = result === undefined
      ? { errors: { '': problem ?? 'No result was returned.' } }
      : { result: { isError: result.isError === true, ms, blocks: kit.blocksOf(result) } }
    return { ...data, ...more }
  })
}

/**
 * Responds with a page once `work` has returned the data for it. The work is cancelled when the browser disconnects. If
 * the browser accepts `text/event-stream`, it gets a stream of events: `progress`, and finally `page`.
 */
export async function showWithProgress (
  { kit }: FastifyInstance, { request, reply }: Visit, page: string, work: (follow: ProgressOptions) =>
  Promise<PageData>
): Promise<void> {
  const signal = abortSignalOf(reply)
  const stream = request.headers.accept === 'text/event-stream' ? openStream(reply) : undefined
  try {
    const whole = await work({
      signal,
      onProgress: (progress) => { stream?.send('progress', toProgressData(progress)) }
    })
    if (!stream) {
      kit.renderer.send(reply, page, whole)
      return
    }
    stream.send('page', { html: kit.renderer.html(reply, page, whole) })
  } catch (error) {
    if (!signal.aborted) throw error
    // The browser has disconnected.
    if (!stream) reply.hijack()
  } finally {
    request.pageMemory?.release()
    // If the stream ends without the event `page`, the browser knows that the call failed.
    stream?.end()
  }
}

/** Returns the data of a `progress` event, which `assets/console/client/follow.ts` reads. */
const toProgressData = ({ progress, total, message }: Progress): object => ({
  ...typeof progress === 'number' && { progress },
  ...typeof total === 'number' && { total },
  ...typeof message === 'string' && { message: message.slice(0, 1_000) }
})

function openStream (reply: FastifyReply): { send: (event: string, data: object) => void, end: () => void } {
  const { raw } = reply.hijack()
  raw.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'x-content-type-options': 'nosniff'
  })
  raw.flushHeaders()
  return {
    // While the browser does not read, progress is dropped. The page is sent in any case.
    send: (event, data) => {
      if (event === 'page' || !raw.writableNeedDrain) raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    },
    end: () => { raw.end() }
  }
}
