import type { CallOptions } from '../../../protocol/call.ts'
import { streamDeadlines, streamMethod } from '../../../protocol/events.ts'
import type { ServerConfig } from '../../../schemas/server.ts'

/** Returns the deadlines of a request to a server. @param requestTimeout the timeout if the config has none, in ms */
export function deadlinesOf (
  requestMethod: string, { options = {} }: Pick<ServerConfig, 'options'>, requestTimeout: number
): CallOptions['deadlines'] {
  const { timeout = requestTimeout, resetTimeoutOnProgress = true, maxTotalTimeout } = options
  // On an event stream, the server sends heartbeats. The stream ends when nothing has arrived for some time.
  return { timeout, ...requestMethod === streamMethod ? streamDeadlines : { resetTimeoutOnProgress, maxTotalTimeout } }
}
