import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import { escapeInvisible } from '../../plugins/extensions/index.ts'
import { auditedEntities } from '../../plugins/settings/index.ts'
import { deepDifferencesOf } from './differences.ts'
import { createPageRouter } from './page.ts'
import { urlWithQuery } from './lists.ts'

type Entry = Awaited<ReturnType<FastifyInstance['audit']['list']>>['data'][number]

/** The number of entries on one page. */
const pageSize = 50

const nouns: Readonly<Record<string, string>> = {
  policy: 'rule',
  systemConfig: 'settings',
  oauthClient: 'application',
  values: 'own credentials',
  activities: 'calls'
}
/** Returns the noun that the console uses for an entity of the audit log. */
const nounOf = (entity: string): string => nouns[entity] ?? entity

/** The page with the audit log. */
const routes: FastifyPluginAsync = async (app) => {
  const { kit } = app
  createPageRouter(app).page('audit', {
    title: 'Audit', isInNav: true
  }, async ({ request, query: { username = '', action = '', entity = '', name = '', cursor = '' } }) => {
    const path = `${kit.base}/audit`
    const filter = { username, action, entity, name }
    const { data, nextCursor } = await kit.api.ask(
      request, 'GET', urlWithQuery('/audit', { ...filter, cursor, limit: String(pageSize) })
    )
    const entries = data as readonly Entry[]
    return {
      isFiltered: Object.values(filter).some((value) => value !== ''),
      filters: [
        { name: 'username', label: 'User', value: username },
        {
          name: 'action',
          label: 'Change',
          value: action,
          options: [
            { value: '', text: 'anything' }, { value: 'create', text: 'added' }, { value: 'update', text: 'changed' },
            { value: 'delete', text: 'removed' }
          ]
        },
        {
          name: 'entity',
          label: 'Kind',
          value: entity,
          options: [
            { value: '', text: 'anything' }, ...auditedEntities.map((each) => ({ value: each, text: nounOf(each) }))
          ]
        },
        { name: 'name', label: 'Name', value: name }
      ],
      items: entries.map((entry) => ({
        at: entry.timestamp,
        who: entry.username,
        via: entry.keyName,
        action: entry.action,
        entity: nounOf(entry.entity),
        name: entry.name && escapeInvisible(entry.name),
        differences: deepDifferencesOf(entry.before, entry.after).map(({ path, before, after }) =>
          ({
            path: escapeInvisible(path),
            before: before && escapeInvisible(before),
            after: after && escapeInvisible(after)
          }))
      })),
      more: typeof nextCursor === 'string' ? urlWithQuery(path, { ...filter, cursor: nextCursor }) : undefined,
      first: cursor === '' ? undefined : urlWithQuery(path, filter)
    }
  })
}
export default routes
