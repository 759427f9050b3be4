// A gateway of two users and a key that listens, and requests to it that no client would send.
import { createHmac } from 'node:crypto'
import { connect } from 'node:net'
import type { Test } from 'tap'
import bcrypt from 'bcryptjs'
import type { FastifyInstance } from 'fastify'
import type { Env } from '../../schemas/env.ts'
import { appFor } from './app.ts'
import { bearerKey, deadline } from './hub.ts'

export const secret = 'a secret of the test that is long enough'
export const password = bcrypt.hashSync('Same-1234', 4)
export const admin = { username: 'admin', password, isAdmin: true }
export const alice = { username: 'alice', password, isAdmin: false }
export const key = bearerKey()

export interface World { app: FastifyInstance, url: string, port: number }

export async function start (t: Test, { env = {}, settings = {} }: { env?: Partial<Env>, settings?: object } = {}): Promise<World> {
  const app = await appFor(t, { users: [admin, alice], bearerKeys: [key], ...settings }, { JWT_SECRET: secret, ...env })
  const url = await app.listen({ host: '127.0.0.1', port: 0 })
  return { app, url, port: Number(new URL(url).port) }
}

export const base64 = (value: unknown): string => Buffer.from(typeof value === 'string' ? value : JSON.stringify(value)).toString('base64url')
export const claimsOf = (token: string): Record<string, unknown> =>
  JSON.parse(Buffer.from(token.split('.')[1] ?? '', 'base64url').toString()) as Record<string, unknown>
export const hs = (algorithm: string, header: object, claims: object, by: string | Buffer = secret): string => {
  const text = `${base64(header)}.${base64(claims)}`
  return `${text}.${createHmac(algorithm, by).update(text).digest('base64url')}`
}

/** One request as raw bytes, for paths and headers that fetch would mend. The status line's code; 0: closed without an answer. */
export async function raw (port: number, text: string): Promise<{ status: number, text: string }> {
  return await new Promise((resolve, reject) => {
    let answer = ''
    const socket = connect(port, '127.0.0.1', () => { socket.write(text) })
    socket.setTimeout(deadline, () => { socket.destroy() })
    socket.on('data', (chunk) => { answer += String(chunk); if (answer.includes('\r\n\r\n')) socket.end() })
    socket.on('close', () => { resolve({ status: Number(/^HTTP\/1\.1 (\d+)/.exec(answer)?.[1] ?? 0), text: answer }) })
    socket.on('error', reject)
  })
}
