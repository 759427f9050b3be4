import type { preSerializationAsyncHookHandler } from 'fastify'
import { recordsJson } from '../../plugins/management/index.ts'

/**
 * Serialises answers that hold servers, or entries of a catalogue, which may be large. Unlike Fastify's serializer, it
 * keeps the order of servers whose names are numbers.
 */
export const serializeRecords: preSerializationAsyncHookHandler = async (_request, reply, answer) => {
  reply.type('application/json; charset=utf-8')
  // The answer is serialised already. Fastify's types allow text only, but it sends a stream as it is.
  reply.serializer((serialized: unknown) => serialized as string)
  return recordsJson(answer)
}
