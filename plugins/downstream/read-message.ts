import { largeText, readLargeMessage } from '../../protocol/large-message.ts'
import { parseMessage, type Malformed, type Message } from '../../protocol/message.ts'
import { ownerOf, type Principal } from '../settings/index.ts'
import { limits, turns } from '../base/limits/index.ts'

export type Received = Message | Array<Message | Malformed>

/**
 * The message or batch in a client's body, handed on at once; of a large body in the turns of its owner.
 * @returns a promise for a large body
 * @throws RpcError as `parseMessage`, ShareError
 */
export function readMessage (
  text: string,
  { principal, address }: { principal: Principal, address: string },
  receive: (message: Received) => void
): Promise<void> | undefined {
  if (text.length <= largeText) {
    receive(parseMessage(text, limits.requestDepth, limits.batch))
    return undefined
  }
  return turns
    .run(ownerOf(principal, address), async (pause) => await readLargeMessage(text, limits.requestDepth, limits.batch, pause))
    .then(receive)
}
