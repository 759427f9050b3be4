import assert from 'node:assert/strict'
import { test } from 'tap'
import type { EventDelivery, EventSubscription, EventWebhooks } from '../../../db/ports/event-webhooks.ts'
import { Deliveries } from '../../../plugins/extensions/events/deliveries.ts'
import type { WebhookSender } from '../../../plugins/extensions/events/webhook-sender.ts'
import { extensionsLimits } from '../../../plugins/extensions/limits.ts'

test('an attempt that the shutdown aborts does not count, not even the last one', async () => {
  const last = extensionsLimits.eventWebhooks.pauses.length
  const due = { key: 'k', subscription: 's', owner: 'o', messageId: 'm', body: '{}', attempts: last, dueAt: 0, version: 'v' }
  const claims: Array<Pick<EventDelivery, 'attempts' | 'dueAt'>> = []
  let settled = 0
  const records = {
    listDue: async () => [due],
    findForDelivery: async () => ({ id: 's' }),
    claim: async (delivery: EventDelivery, next: Pick<EventDelivery, 'attempts' | 'dueAt'>) => {
      claims.push(next)
      return { ...delivery, ...next }
    },
    settle: async () => { settled++ }
  } as unknown as EventWebhooks
  let abort = (): void => {}
  const sender = {
    post: async () => {
      await new Promise<void>((resolve) => { abort = resolve })
      return { reason: 'connection_refused', isFinal: false }
    },
    close: () => { abort() }
  } as unknown as WebhookSender
  const deliveries = new Deliveries({
    records,
    sender,
    destinationOf: async ({ id }: EventSubscription) => ({ id, url: 'https://a.example/', secrets: [], owner: 'o', trusted: false }),
    end: async () => {},
    logError: () => {}
  })
  await deliveries.sendDue()
  await new Promise((resolve) => { setImmediate(resolve) })
  await deliveries.close()
  assert.deepEqual(claims.map(({ attempts }) => attempts), [last + 1, last])
  assert.equal(settled, 0)
})
