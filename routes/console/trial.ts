import type { FastifyInstance, FastifyReply } from 'fastify'
import type { FollowOptions, PageData, Progress } from '../../plugins/management/index.ts'
import { abortSignalOf } from '../caller.ts'
import type { Visit } from './page.ts'

/** A request to one server's MCP route. `params`: JSON text. `tool`: the item, if it is a tool. */
export interface Trial {
  readonly server: string, readonly method: string, readonly params: string, readonly tool?: unknown
}

/** Sends a request as the signed-in user, and shows the page with its result. */
export async function sendTrial (
  app: FastifyInstance, visit: Visit, { server, method, params, tool }: Trial, page: string, data: PageData
): Promise<void> {
  const { kit } = app
  await showWithProgress(app, visit, page, async (follow) => {
    const begun = performance.now()
    const path = `/mcp/${encodeURIComponent(server)}`
    const { result, problem } = await kit.mcp.follow(visit.request, path, method, params, { tool, follow })
    const ms = performance.now() - begun
    const more = result === undefined
      ? { errors: { '': problem ?? 'No result was returned.' } }
      : { result: { isError: result.isError === true, ms, blocks: kit.blocksOf(result) } }
    return { ...data, ...more }
  })
}

/**
 * Shows a page when the work for its data is done. The work is cancelled when the browser disconnects. A browser that
 * accepts `text/event-stream` gets the progress first, and then the page as an event.
 */
export async function showWithProgress (
  { kit }: FastifyInstance, { request, reply }: Visit, page: string, work: (follow: FollowOptions) => Promise<PageData>
): Promise<void> {
  const signal = abortSignalOf(reply)
  const stream = request.headers.accept === 'text/event-stream' ? openStream(reply) : undefined
  try {
    const whole = await work({
      signal,
      onProgress: (progress) => { stream?.tell('progress', toProgressData(progress)) }
    })
    if (!stream) {
      kit.renderer.send(reply, page, whole)
      return
    }
    stream.tell('page', { html: kit.renderer.html(reply, page, whole) })
    stream.end()
  } catch (error) {
    if (!signal.aborted) throw error
    // The browser has disconnected.
    if (!stream) reply.hijack()
  }
}

/** Converts progress to the form that the script expects. */
const toProgressData = ({ progress, total, message }: Progress): object => ({
  ...typeof progress === 'number' && { progress },
  ...typeof total === 'number' && { total },
  ...typeof message === 'string' && { message: message.slice(0, 1_000) }
})

function openStream (reply: FastifyReply): { tell: (event: string, data: object) => void, end: () => void } {
  const { raw } = reply.hijack()
  raw.writeHead(200, {
    'content-type': 'text/event-stream',
    'cache-control': 'no-store',
    'x-accel-buffering': 'no',
    'x-content-type-options': 'nosniff'
  })
  raw.flushHeaders()
  return {
    // A browser that does not read gets no further progress until its buffer is drained.
    tell: (event, data) => {
      if (event === 'page' || !raw.writableNeedDrain) raw.write(`event: ${event}\ndata: ${JSON.stringify(data)}\n\n`)
    },
    end: () => { raw.end() }
  }
}
