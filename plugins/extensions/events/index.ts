import type { Static } from '@sinclair/typebox'
import fp from 'fastify-plugin'
import type { EventSubscription, EventWebhooks, FailedDelivery } from '../../../db/ports/event-webhooks.ts'
import { StorageError, type Server } from '../../../db/store.ts'
import type { ShownEventSubscription } from '../../../schemas/events.ts'
import { loadOnce } from '../../base/config/index.ts'
import { noSuchError } from '../../base/errors/index.ts'
import { runPeriodically } from '../../base/limits/index.ts'
import { createProcessSealer, type Sealer } from '../../base/secrets/index.ts'
import { serverFingerprint } from '../../gateway/index.ts'
import {
  canUseMcp, configuredBaseUrl, isOfFormerAccount, makeView, type Principal, type View
} from '../../settings/index.ts'
import { routePathOf } from '../policies/facts.ts'
import type { StoredRoute } from './subscription.ts'
import type { WebhookDeps, Webhooks } from './webhooks.ts'

declare module 'fastify' {
  interface FastifyInstance { eventWebhooks: EventWebhooksApi }
}

interface EventWebhooksApi {
  /** Handles a message that a server has posted to the gateway; see `Webhooks.receive`. */
  receive: Webhooks['receive']
  /** Lists the newest failed deliveries: those of the principal's user, or all for an admin. @throws StorageError */
  listFailed: (principal: Principal) => Promise<FailedDelivery[]>
  /** Lists the active subscriptions: those of the principal's user, or all for an admin. @throws StorageError */
  list: (principal: Principal) => Promise<ShownSubscription[]>
  /** Ends a subscription that the principal may see. Notifies its server and client. @throws NoSuch, StorageError */
  remove: (principal: Principal, id: string) => Promise<void>
}

/** A subscription in a response, without its secrets and arguments. */
type ShownSubscription = Static<typeof ShownEventSubscription>

export interface EventsOptions {
  storage: { readonly eventWebhooks: EventWebhooks }
  sealer?: Sealer
}

/** Whether a server is the server of an event: it has the same name, and was not replaced by another server. */
const isServer = ({ name, config }: Server, { provider, server }: EventSubscription['event']): boolean =>
  name === provider && serverFingerprint(name, config) === server

/** Interval at which due messages are sent and the access of OAuth clients is checked, in ms. */
const interval = 2_000

/**
 * Decorates the app with `eventWebhooks`, handles `events/subscribe` and `events/unsubscribe`, and forwards messages
 * from servers to the webhooks of clients.
 */
export default fp<EventsOptions>(async (app, { storage, sealer = createProcessSealer() }) => {
  const { eventWebhooks: records } = storage
  /** Whether a hook hides an event type from a view. */
  const isHidden = (view: View, { provider, key }: EventSubscription['event']): boolean => {
    const { filter } = app.gateway.filteredView(view, view.principal.address)
    const item = filter && app.gateway.catalogue(provider)?.lists.events.find((each) => each.key === key)
    return item !== undefined && filter?.isHidden(provider, 'events', item) === true
  }
  /** Returns the current view of a subscription; undefined if its principal no longer sees the event. */
  const viewOf = async ({ credential, route, event }: EventSubscription): Promise<View | undefined> => {
    const principal = await app.auth.principalOfCredential(credential)
    if (principal === undefined || !canUseMcp(principal)) return undefined
    const { scope, presentation, address } = route as StoredRoute
    const view = makeView({ ...principal, address }, scope, presentation)
    const isVisible = app.access.isViewCurrent(view, principal) &&
      app.access.visibleServers(view).some(({ server }) => isServer(server, event))
    return isVisible && !isHidden(view, event) ? view : undefined
  }
  let wereNeeded = false
  /** Returns the webhooks. Their code is loaded when it is first needed. */
  const webhooks = loadOnce(async () => {
    wereNeeded = true
    const [{ WebhookSender }, { Webhooks: WebhooksClass }] =
      await Promise.all([import('./webhook-sender.ts'), import('./webhooks.ts')])
    return new WebhooksClass({ ...deps, sender: new WebhookSender(app.outbound) })
  })
  const deps: Omit<WebhookDeps, 'sender'> = {
    gateway: app.gateway,
    records,
    sealer,
    base: () => {
      const base = configuredBaseUrl(app.settings.current.system, app.config)
      return base?.startsWith('https:') === true ? `${base}/webhooks/events/` : undefined
    },
    credentialOf: ({ principal }) => app.auth.lastingCredentialOf(principal),
    viewOf,
    isByAdmin: async ({ credential }) => (await app.auth.principalOfCredential(credential))?.isAdmin === true,
    hasServer: ({ event }) => {
      const server = app.settings.current.servers.get(event.provider)
      return server !== undefined && isServer(server, event)
    },
    logError: (error, sentence) => { app.log.error({ err: error }, sentence) }
  }
  app.gateway.addMethod('events/subscribe', async (exchange) => await (await webhooks()).subscribe(exchange))
  app.gateway.addMethod('events/unsubscribe', async (exchange) => await (await webhooks()).unsubscribe(exchange))

  /** Whether the webhooks were needed before, a subscription is stored, or a stored message is due. */
  const isUsed = async (): Promise<boolean> => wereNeeded ||
    (await records.list()).length > 0 || (await records.listDue(Date.now())).length > 0

  let last = Promise.resolve()
  /**
   * Runs a task after the earlier ones. Errors are logged, except that the database is unavailable (StorageError).
   */
  const queue = async (work: () => Promise<void>): Promise<void> => {
    last = last.then(work).catch((error: unknown) => {
      if (error instanceof StorageError) return
      app.log.error({ err: error }, 'the webhooks for events could not be checked')
    })
    await last
  }
  let isChecking = false
  app.auth.accessChanges.on('changed', () => {
    if (isChecking) return
    isChecking = true
    void queue(async () => {
      isChecking = false
      if (await isUsed()) await (await webhooks()).endSubscriptionsWithoutAccess(false)
    })
  })
  runPeriodically(app, interval, async () => {
    await queue(async () => {
      if (!await isUsed()) return
      const loaded = await webhooks()
      await loaded.endSubscriptionsWithoutAccess(true)
      await loaded.deliveries.sendDue()
    })
  })
  app.addHook('onClose', async () => {
    if (wereNeeded) await (await webhooks()).deliveries.close()
    await last
  })

  app.decorate('eventWebhooks', {
    receive: async (...message) => await (await webhooks()).receive(...message),
    listFailed: async ({ isAdmin, username = '' }) => isAdmin
      ? await records.listFailed()
      : (await records.listFailed(username))
          .filter(({ failedAt }) => !isOfFormerAccount(app.settings.current, username, Date.parse(failedAt))),
    list: async (principal) => (await records.list()).filter((each) => canSee(principal, each)).map(show),
    remove: async (principal, id) => {
      const subscription = await records.find(id)
      if (subscription === undefined || !canSee(principal, subscription)) throw noSuchError('subscription', id)
      await (await webhooks()).end(subscription)
    }
  } satisfies EventWebhooksApi)
}, { name: 'events', dependencies: ['gateway', 'auth', 'access', 'settings', 'outbound', 'config'] })

/** Whether a principal may see a subscription: an admin sees all, a user those made with the user's keys and logins. */
const canSee = ({ isAdmin, username }: Principal, { user }: EventSubscription): boolean => isAdmin || user === username

const show = ({ id, user, url, event, name, route, expiresAt }: EventSubscription): ShownSubscription => ({
  id,
  user,
  server: event.provider,
  event: name,
  route: routePathOf(route as View),
  url,
  expiresAt: new Date(expiresAt).toISOString()
})
