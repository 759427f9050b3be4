import { randomUUID } from 'node:crypto'
import { setTimeout as delay } from 'node:timers/promises'
import fp from 'fastify-plugin'
import { firstSchemaProblem } from '../../../schemas/problem.ts'
import { NotificationSettings as Settings, type NotifiedEvent } from '../../../schemas/settings.ts'
import { signWebhook } from '../../base/outbound/index.ts'
import { extensionsLimits } from '../limits.ts'

declare module 'fastify' {
  interface FastifyInstance { notifications: Notifications }
}

interface Notifications {
  /**
   * Sends a message about an event to the operator's webhook (`systemConfig.notifications`), if the webhook is
   * configured for this kind of event. Does not wait for the delivery, and does not throw if it fails.
   * @param data the content of the message; must be serializable as JSON and contain no secrets
   */
  send: (event: NotifiedEvent, data: object) => void
}

/** `app.notifications`: sends signed messages (Standard Webhooks) to the operator's webhook, with retries. */
export default fp(async (app) => {
  const { maxWaiting, maxAnswer, timeout, pauses } = extensionsLimits.notifications
  const closing = new AbortController()
  app.addHook('onClose', async () => { closing.abort() })
  let waiting = 0

  const deliver = async (event: NotifiedEvent, { url, secret }: Settings, body: string): Promise<void> => {
    const id = `msg_${randomUUID()}`
    let problem = ''
    for (const pause of [0, ...pauses]) {
      await delay(pause, undefined, { signal: closing.signal, ref: false })
      try {
        const { status } = await app.outbound.fetch(url ?? '', {
          trusted: true,
          method: 'POST',
          headers: signWebhook(secret ?? '', body, id),
          body,
          maxSize: maxAnswer,
          timeout,
          signal: closing.signal,
          returnsRedirects: 'all'
        })
        if (status >= 200 && status < 300) return
        problem = `it answered HTTP ${status}`
        // With 410, a webhook says that it no longer exists (Standard Webhooks).
        if (status === 410) break
      } catch (error) {
        problem = (error as Error).message
      }
    }
    app.log.warn({ event, problem }, 'the webhook of systemConfig.notifications did not accept a message')
  }

  app.decorate('notifications', {
    send: (event, data) => {
      const settings = app.settings.current.system.notifications ?? {}
      if (firstSchemaProblem(Settings, settings) !== undefined || settings.url === undefined) return
      if (settings.events !== undefined && !settings.events.includes(event)) return
      if (waiting >= maxWaiting) {
        app.log.warn(
          { event }, 'a message for the webhook of systemConfig.notifications was dropped: too many are queued'
        )
        return
      }
      waiting++
      const body = JSON.stringify({ type: event, timestamp: new Date().toISOString(), data })
      deliver(event, settings, body).catch(() => {}).finally(() => { waiting-- })
    }
  })
}, { name: 'notifications', dependencies: ['outbound', 'settings'] })
