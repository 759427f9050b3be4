import type { preSerializationAsyncHookHandler } from 'fastify'
import { serializeApiResponse } from '../../plugins/management/index.ts'

/**
 * Serialises responses with servers or catalogue entries, which can be large, as JSON text or a stream of it. Unlike
 * Fastify's serializer, it keeps the order of servers whose names are numbers.
 */
export const serializeRecords: preSerializationAsyncHookHandler = async (_request, reply, answer) => {
  reply.type('application/json; charset=utf-8')
  // The response is already serialised. The type of `serializer` allows only strings, but Fastify sends a stream
  // unchanged.
  reply.serializer((serialized: unknown) => serialized as string)
  return serializeApiResponse(answer)
}
