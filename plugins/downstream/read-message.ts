import type { MalformedMessage, Message } from '../../protocol/message.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { rpcCode, RpcError } from '../../protocol/errors.ts'
import { memoryOf } from '../../protocol/text.ts'
import { memoryOfJson } from '../base/body/index.ts'
import { baseLimits } from '../base/limits/index.ts'
import { downstreamLimits } from './limits.ts'

/** A message from a client, or the elements of a batch. */
export type ReceivedMessage = Message | Array<Message | MalformedMessage>

/** Parses the body of a client's POST, a message or a batch. @throws the errors of `parseMessage` */
export const parseClientMessage = (text: string): ReceivedMessage =>
  parseMessage(text, baseLimits.requestDepth, downstreamLimits.batch)

/**
 * Checks the size of the capabilities that a client declares, which stay in memory as long as the client.
 * @param text the JSON text of the object
 * @param name the name of the member, for the error
 * @returns the memory that the parsed object takes, in bytes
 * @throws RpcError -32602 beyond `downstreamLimits.capabilities`
 */
export function measureCapabilities (text: string, name: string): number {
  const { text: maxText, memory: maxMemory } = downstreamLimits.capabilities
  if (memoryOf(text) > maxText) {
    const sentence = `has more than ${maxText} characters, or half as many if any is outside Latin-1; declare fewer ` +
      'members or shorter strings'
    throw new RpcError(rpcCode.invalidParams, `Invalid params: "${name}" ${sentence}`)
  }
  const size = memoryOfJson(text)
  if (size > maxMemory) {
    throw new RpcError(
      rpcCode.invalidParams, `Invalid params: "${name}" contains too many members and values; declare fewer`
    )
  }
  return size
}
