import rateLimit, { type FastifyRateLimitStoreCtor } from '@fastify/rate-limit'
import type { FastifyRequest } from 'fastify'
import fp from 'fastify-plugin'
import type { Counters } from '../../../db/store.ts'
import { AttemptLimiter, type CountAttempt } from './attempts.ts'
import { identityLimits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyInstance { attempts: AttemptLimiter<FastifyRequest> }
  interface FastifyRequest {
    /** The key under which an attempt of this request is counted; `''` before the first attempt. */
    attemptKey: string
  }
}

/** Creates a @fastify/rate-limit store on counters that all replicas share. */
function createCounterStore (counters: Counters): FastifyRateLimitStoreCtor {
  return class CounterStore {
    incr (
      key: string, done: (error: Error | null, result?: { current: number, ttl: number }) => void, window: number
    ): void {
      void counters.take(key, 1, window).then(({ count, left }) => { done(null, { current: count, ttl: left }) })
    }

    child (): this { return this }
  }
}

/** `app.attempts`: the rate limits for logins, registrations, authorization requests, client secrets and templates. */
export default fp(async (app) => {
  await app.register(rateLimit, { global: false, store: createCounterStore(app.counters) })
  app.decorateRequest('attemptKey', '')
  /** Creates a counter that allows `max` attempts per key within `timeWindow` ms. */
  const count = (max: number, timeWindow: number): CountAttempt<FastifyRequest> => {
    const hit = app.createRateLimit({ max, timeWindow, keyGenerator: ({ attemptKey }) => attemptKey })
    return async (request, key) => {
      request.attemptKey = key
      const result = await hit(request)
      return result.isAllowed || !result.isExceeded ? 0 : Math.max(1, result.ttlInSeconds)
    }
  }
  const reset = async (key: string): Promise<void> => { await app.counters.reset(key) }
  app.decorate('attempts', new AttemptLimiter({
    failure: count(identityLimits.loginFailures, identityLimits.loginWindow),
    registration: count(identityLimits.registrations, identityLimits.registrationWindow),
    client: count(identityLimits.oauth.registrations, identityLimits.oauth.window),
    authorization: count(identityLimits.oauth.authorizations, identityLimits.oauth.window),
    secret: count(identityLimits.oauth.secrets, identityLimits.oauth.window),
    template: count(identityLimits.templates.requests, identityLimits.templates.window),
    social: count(identityLimits.social.logins, identityLimits.social.window)
  }, reset, app.refusals))
}, { name: 'throttle', dependencies: ['base', 'refusals'] })
