import type { FastifyInstance, FastifyPluginAsync } from 'fastify'
import type { Quota } from '../../schemas/quotas.ts'
import { addOrderedEntityPages, toSelectOptions } from './ordered.ts'
import { type SubmittedForm, toNumberOrText, formFieldText } from './page.ts'

const periods = [{ value: 'day', text: 'Day' }, { value: 'minute', text: 'Minute' }]

/** The members of a quota's target for which the form offers a list of names. */
const offeredMembers = ['user', 'team', 'key', 'server'] as const

/** The choices for each member of a target: the names to show, by the values to store. */
type Names = Readonly<Record<typeof offeredMembers[number], ReadonlyMap<string, string>>>

/** The pages that list, add, change and remove quotas. */
const routes: FastifyPluginAsync = async (app) => {
  addOrderedEntityPages(app, {
    page: 'quotas',
    path: '/quotas',
    entries: app.quotas,
    isOrdered: false,
    verbPhrase: 'limits calls',
    rowOf: (quota) => {
      const [text = '', under] = limitsOf(quota)
      return { about: aboutOf(quota, namesIn(app)), effect: { text, under } }
    },
    fieldsOf: (quota) => fieldsOf(quota, namesIn(app)),
    toBody: toQuota
  })
}
export default routes

function namesIn ({ settings: { current: { users, teams, keys, servers } } }: FastifyInstance): Names {
  const toIdentityMap = (names: Iterable<string>): Map<string, string> =>
    new Map([...names].map((name) => [name, name]))
  return {
    user: toIdentityMap(users.keys()),
    team: toIdentityMap(teams.keys()),
    key: new Map([...keys.values()].map(({ id, name }) => [id, name])),
    server: toIdentityMap(servers.keys())
  }
}

function limitsOf ({ calls, resultTokens, per }: Quota): string[] {
  const limit = (count: number | undefined, noun: string): string[] =>
    count === undefined ? [] : [`${count.toLocaleString('en')} ${noun}${count === 1 ? '' : 's'} a ${per}`]
  return [...limit(calls, 'call'), ...limit(resultTokens, 'result token')]
}

function aboutOf ({ target }: Quota, { key: keyNames }: Names): string {
  const parts = Object.entries(target).map(([member, name]) =>
    name === '*' ? `each ${member}` : `${member} ${member === 'key' ? keyNames.get(name) ?? name : name}`)
  return parts.length === 0 ? 'all calls together' : parts.join(', ')
}

function fieldsOf ({ name, target = {}, per, calls, resultTokens }: Partial<Quota>, names: Names): object[] {
  return [
    { name: 'name', label: 'Name', required: true, value: name },
    { name: 'calls', label: 'Max calls', type: 'number', value: calls, hint: 'Leave empty for no limit.' },
    {
      name: 'resultTokens',
      label: 'Max result tokens',
      type: 'number',
      value: resultTokens,
      hint: 'Leave empty for no limit. The call that exceeds it still gets its result.'
    },
    { name: 'per', label: 'Per', type: 'select', options: toSelectOptions(periods, per) },
    ...offeredMembers.map((member, at) => ({
      name: `target.${member}`,
      ...at === 0 && { heading: 'Applies to' },
      label: member.charAt(0).toUpperCase() + member.slice(1),
      type: 'select',
      options: toSelectOptions([
        { value: '', text: 'any' },
        { value: '*', text: `each ${member} separately` },
        ...withStored(names[member], target[member])
      ], target[member] ?? '')
    })),
    {
      name: 'target.tool',
      label: 'Tool',
      value: target.tool,
      hint: 'Its name on the server, or * to count each tool separately. Needs a server.'
    }
  ]
}

/** Returns options for names. The stored value is an option even if it is not among the names. */
const withStored = (names: ReadonlyMap<string, string>, stored = '*'): Array<{ value: string, text: string }> =>
  [...names, ...stored === '*' || names.has(stored) ? [] : [[stored, stored] as const]]
    .map(([value, text]) => ({ value, text }))

/** Converts a form to a request body for the API, without optional members whose fields are empty. */
function toQuota (sent: SubmittedForm): object {
  const limit = (field: string): object => {
    const text = formFieldText(sent[field]).trim()
    return text === '' ? {} : { [field]: toNumberOrText(text) }
  }
  const target = [...offeredMembers, 'tool'].map((member) => [member, formFieldText(sent[`target.${member}`]).trim()])
  return {
    name: formFieldText(sent.name),
    per: formFieldText(sent.per),
    target: Object.fromEntries(target.filter(([, value]) => value !== '')),
    ...limit('calls'),
    ...limit('resultTokens')
  }
}
