import type { preSerializationAsyncHookHandler } from 'fastify'
import { recordsJson } from '../../plugins/servers/item-texts.ts'

/** For routes whose answers have servers' records in them, which may be large. */
export const writeRecords: preSerializationAsyncHookHandler = async (_request, reply, answer) => {
  reply.type('application/json; charset=utf-8')
  // It is written already. Its types speak of text; bytes are sent as they are.
  reply.serializer((written: unknown) => written as string)
  return await recordsJson(answer)
}
