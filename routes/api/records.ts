import type { preSerializationAsyncHookHandler } from 'fastify'
import { ownerOf } from '../../plugins/settings/index.ts'
import { chunkedReply, memory, type Release } from '../../plugins/base/limits/index.ts'
import { recordsJson } from '../../plugins/management/index.ts'
import { principalOf } from './principal.ts'

/**
 * Serialises answers that hold servers, or entries of a catalogue, which may be large, in pieces. Unlike Fastify's serializer, it keeps the
 * order of servers whose names are numbers.
 * @throws ShareError
 */
export const serializeRecords: preSerializationAsyncHookHandler = async (request, reply, answer) => {
  const owner = ownerOf(principalOf(request), request.ip)
  const releases: Release[] = []
  try {
    const json = await recordsJson(answer, (bytes) => { releases.push(memory.take(owner, bytes)) })
    reply.type('application/json; charset=utf-8')
    // The answer is serialised already. Fastify's types allow text only, but it sends a stream as it is.
    reply.serializer((serialized: unknown) => serialized as string)
    if (typeof json === 'string') return json
    reply.header('content-length', json.length)
    return chunkedReply(reply.raw, json.parts, json.length, { owner, cost: 1 })
  } finally {
    // From now on it counts as one that its client has not read.
    for (const release of releases) release()
  }
}
