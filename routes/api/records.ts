import type { preSerializationAsyncHookHandler } from 'fastify'
import { serializeApiResponse } from '../../plugins/management/index.ts'

/**
 * A preSerialization hook for responses with servers or catalogue entries, which can be large. It serialises them as
 * JSON text or a stream of JSON text. Unlike Fastify's serializer, it keeps servers whose names are numbers in order.
 */
export const serializeRecords: preSerializationAsyncHookHandler = async (_request, reply, answer) => {
  reply.type('application/json; charset=utf-8')
  // The hook's result is already serialised. By its type, `serializer` must return a string, but Fastify sends a stream
  // as it is.
  reply.serializer((serialized: unknown) => serialized as string)
  return serializeApiResponse(answer)
}
