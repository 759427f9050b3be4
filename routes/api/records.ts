import type { preSerializationAsyncHookHandler } from 'fastify'
import { recordsJson } from '../../plugins/servers/item-texts.ts'

/** Serialises answers that hold server records, which may be large, in pieces. */
export const serializeRecords: preSerializationAsyncHookHandler = async (_request, reply, answer) => {
  reply.type('application/json; charset=utf-8')
  // The answer is serialised already. Fastify's types allow text only, but it sends a Buffer as it is.
  reply.serializer((serialized: unknown) => serialized as string)
  return await recordsJson(answer)
}
