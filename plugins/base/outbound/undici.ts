// Loads only the parts of undici that are used. The index of undici would also load `fetch`, WebSocket, caches and
// mocks.
import type * as undici from 'undici'
// @ts-expect-error undici states types for its index only
import agent from 'undici/lib/dispatcher/agent.js'
// @ts-expect-error
import base from 'undici/lib/dispatcher/dispatcher.js'
// @ts-expect-error
import pool from 'undici/lib/dispatcher/pool.js'
// @ts-expect-error
import connectOf from 'undici/lib/api/api-connect.js'
// @ts-expect-error
import requestOf from 'undici/lib/api/api-request.js'
// @ts-expect-error
import connector from 'undici/lib/core/connect.js'

export type Agent = undici.Agent
export const Agent = agent as typeof undici.Agent
export const Pool = pool as typeof undici.Pool
export const buildConnector = connector as typeof undici.buildConnector

// The index of undici adds these methods in the same way.
const { prototype } = base as typeof undici.Dispatcher
Object.assign(prototype, { connect: connectOf as unknown, request: requestOf as unknown })

type RequestOptions = Omit<undici.Dispatcher.RequestOptions, 'origin' | 'path'> & { dispatcher: undici.Dispatcher }

/** Sends one request. @returns the answer, once its head has arrived */
export const request = async (
  { origin, pathname, search }: URL, { dispatcher, ...options }: RequestOptions
): Promise<undici.Dispatcher.ResponseData> =>
  await dispatcher.request({ ...options, origin, path: `${pathname}${search}` })
