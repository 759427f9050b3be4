import type { Malformed, Message } from '../../protocol/message.ts'
import { parseMessage } from '../../protocol/parse-message.ts'
import { limits } from '../base/limits/index.ts'

export type Received = Message | Array<Message | Malformed>

/** The message or batch in a client's body. @throws RpcError as `parseMessage` */
export const readMessage = (text: string): Received => parseMessage(text, limits.requestDepth, limits.batch)
