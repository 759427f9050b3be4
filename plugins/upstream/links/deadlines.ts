import type { CallOptions } from '../../../protocol/call.ts'
import { streamDeadlines, streamMethod } from '../../../protocol/events.ts'
import type { ServerConfig } from '../../../schemas/server.ts'

/** The deadlines of a request to a server. @param requestTimeout in ms, for a server whose config has none */
export function deadlinesOf (
  requestMethod: string, { options = {} }: Pick<ServerConfig, 'options'>, requestTimeout: number
): CallOptions['deadlines'] {
  const { timeout = requestTimeout, resetTimeoutOnProgress = true, maxTotalTimeout } = options
  // A stream, whose server sends a heartbeat, ends when nothing has come for a while.
  return { timeout, ...requestMethod === streamMethod ? streamDeadlines : { resetTimeoutOnProgress, maxTotalTimeout } }
}
