import { streamIdOf, streamMethod } from '../../../protocol/events.ts'
import type { Notification } from '../../../protocol/message.ts'
import type { MessageOrigin } from '../../../protocol/upstream-session.ts'
import type { Link } from '../links/link.ts'

/**
 * Forwards a notification of an event stream (`events/stream`) to the request that opened the stream.
 * @returns false if that request is not open
 */
export function dispatchEventStreamNotification (
  link: Link, { method, params, paramsText }: Notification, origin: MessageOrigin
): boolean {
  const id = streamIdOf(params)
  const call = origin ?? link.openCalls.find((each) => each.id === id)
  if (call === undefined || call === 'over' || call.method !== streamMethod) return false
  call.restartTimeout()
  call.notify(method, paramsText)
  return true
}
