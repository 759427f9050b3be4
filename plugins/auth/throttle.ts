import rateLimit, { type FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import { StorageError, type Counters } from '../../db/store.ts'
import { errors } from '../errors/list.ts'
import { Attempts, type Count } from './attempts.ts'
import { limits } from '../limits/index.ts'

declare module 'fastify' {
  interface FastifyInstance { attempts: Attempts<FastifyRequest> }
  interface FastifyRequest {
    /** What an attempt of this request counts under. */
    attempt: string
  }
}

/** The counts of the rate limiter, where all replicas see them. A database that is away is no reason to let guesses through. */
function storeOn (counters: Counters): FastifyRateLimitStoreCtor {
  return class CounterStore {
    incr (key: string, done: (error: Error | null, result?: { current: number, ttl: number }) => void, window: number): void {
      counters.hit(key, window).then(
        ({ count, left }) => {
          done(null, { current: count, ttl: left })
        },
        (error: unknown) => {
          done(told(error))
        }
      )
    }

    child (): this { return this }
  }
}

function told (error: unknown): Error {
  if (error instanceof StorageError) return new errors.StorageAway(error.message)
  return error instanceof Error ? error : new Error(String(error))
}

/** `app.attempts`: what strangers try with passwords. */
export default fp(async (app) => {
  await app.register(rateLimit, { global: false, store: storeOn(app.counters) })
  app.decorateRequest('attempt', '')
  const count = (max: number, timeWindow: number): Count<FastifyRequest> => {
    const hit = app.createRateLimit({ max, timeWindow, keyGenerator: ({ attempt }) => attempt })
    return async (request, key) => {
      request.attempt = key
      const result = await hit(request)
      return result.isAllowed || !result.isExceeded ? 0 : Math.max(1, result.ttlInSeconds)
    }
  }
  const forget = async (key: string): Promise<void> => { await app.counters.reset(key).catch((error: unknown) => { throw told(error) }) }
  app.decorate(
    'attempts',
    new Attempts(count(limits.loginFailures, limits.loginWindow), count(limits.registrations, limits.registrationWindow), forget)
  )
}, { name: 'throttle', dependencies: ['counters'] })
