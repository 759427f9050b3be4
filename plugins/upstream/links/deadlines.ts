import type { CallOptions } from '../../../protocol/call.ts'
import { streamDeadlines, streamMethod } from '../../../protocol/events.ts'
import type { ServerConfig } from '../../../schemas/server.ts'

/** The deadlines of a request to a server. @param requestTimeout the default, in ms, if the config states none */
export function deadlinesOf (
  requestMethod: string, { options = {} }: Pick<ServerConfig, 'options'>, requestTimeout: number
): CallOptions['deadlines'] {
  const { timeout = requestTimeout, resetTimeoutOnProgress = true, maxTotalTimeout } = options
  // On a stream the server sends heartbeats, so it ends when nothing has arrived for some time.
  return { timeout, ...requestMethod === streamMethod ? streamDeadlines : { resetTimeoutOnProgress, maxTotalTimeout } }
}
