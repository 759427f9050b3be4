import type { Static } from '@sinclair/typebox'
import type { Command } from 'commander'
import type { KeyRecord } from '../../schemas/key-api.ts'
import { withApi, type CommandRun } from '../context.ts'
import { exitCodes, CommandError } from '../errors.ts'
import { collectOption } from './server-config.ts'

type Key = Static<typeof KeyRecord>
interface CreateOptions { kind: string, owner: string, group: string[], server: string[], expires?: string }

/** Registers the commands of `key`, which create, list and revoke bearer keys. */
export function addKeyCommands (program: Command, run: CommandRun): void {
  const key = program.command('key').description('bearer keys')

  key.command('create')
    .description('create a key, and show it once')
    .argument('<name>')
    .option('--kind <kind>', 'user: what its owner sees, for MCP and tools only; system: everything, including the ' +
      'management API', 'user')
    .option('--owner <username>', 'the owner; a system key is valid while its owner is an admin', 'admin')
    .option('--group <name>', 'only the routes of this group (repeatable)', collectOption, [])
    .option('--server <name>', 'only the routes of this server (repeatable)', collectOption, [])
    .option('--expires <when>', 'a duration, such as 12h or 30d, or a date, such as 2027-01-31, for the end ' +
      'of that day, in UTC')
    .action(async (name: string, { kind, owner, group, server, expires }: CreateOptions, command: Command) => {
      const accessType = server.length === 0
        ? (group.length === 0 ? 'all' : 'groups')
        : group.length === 0 ? 'servers' : 'custom'
      const body = {
        name,
        kind,
        accessType,
        allowedGroups: group,
        allowedServers: server,
        owner,
        ...(expires === undefined ? {} : { expiresAt: parseExpiry(expires) })
      }
      await withApi(run, command, async ({ api, out }) => {
        const { data, warnings = [] } =
          await api.request<{ data: Key, warnings?: string[] }>('POST', '/api/auth/keys', body)
        // Only the token is written to stdout, so that a script can read it.
        out.writeResultWithWarnings(data, warnings, data.token)
        const expiry = data.expiresAt === undefined ? '' : ` It expires at ${data.expiresAt}.`
        if (!out.isJson) out.writeRemark(`Keep the token: it is not shown again.${expiry}`)
      })
    })

  key.command('list')
    .description('the keys, without their tokens')
    .action(async (_options, command: Command) => {
      await withApi(run, command, async ({ api, out }) => {
        const keys = await api.get<Key[]>('/api/auth/keys')
        out.writeResult(keys, () => keys.length === 0
          ? 'There are no keys yet: tool-hub key create'
          : out.formatTable(['ID', 'NAME', 'TOKEN', 'KIND', 'OWNER', 'OPENS', 'STATE', 'EXPIRES', 'LAST USED'], keys
            .map((each) => [
              ...[each.id, each.name, each.token, each.kind, each.owner ?? '', scopeText(each), stateOf(each)],
              ...[each.expiresAt ?? '', each.lastUsedAt ?? '']
            ])))
      })
    })

  key.command('revoke')
    .description('remove a key, which is then refused')
    .argument('<key>', 'its id, or its name if no other key has the same name')
    .action(async (which: string, _options, command: Command) => {
      await withApi(run, command, async ({ api, out }) => {
        const keys = await api.get<Key[]>('/api/auth/keys')
        const found = keys.filter(({ id, name }) => id === which || name === which)
        if (found.length > 1 && !found.some(({ id }) => id === which)) {
          throw new CommandError(`${found.length} keys are named ${JSON.stringify(which)}: specify the id of one`)
        }
        const [one = { id: which, name: which }] = found.sort((a, b) => Number(b.id === which) - Number(a.id === which))
        await api.request('DELETE', `/api/auth/keys/${encodeURIComponent(one.id)}`)
        out.writeResult(
          { id: one.id, name: one.name, revoked: true }, `The key ${JSON.stringify(one.name)} was revoked`
        )
      })
    })
}

const scopeText = ({ accessType, allowedGroups, allowedServers }: Key): string =>
  accessType === 'all' ? 'all' : [...allowedGroups, ...allowedServers].join(', ')

function stateOf ({ enabled, expiresAt, inactive }: Key): string {
  if (!enabled) return 'disabled'
  if (expiresAt !== undefined && Date.parse(expiresAt) <= Date.now()) return 'expired'
  return inactive === undefined ? 'enabled' : `inactive: ${inactive}`
}

const units: Readonly<Record<string, number>> = { s: 1_000, m: 60_000, h: 3_600_000, d: 86_400_000, w: 7 * 86_400_000 }

/** Whether a text begins with a date that exists. `Date` itself accepts 31 November, and converts it to 1 December. */
function isDay (text: string): boolean {
  const [, day = ''] = /^(\d{4}-\d{2}-\d{2})(?:$|[T ])/.exec(text) ?? []
  const time = Date.parse(day)
  return !Number.isNaN(time) && new Date(time).toISOString().startsWith(day)
}

/**
 * Returns the time, in ISO 8601, at which a key expires.
 * @param text a duration from now, such as `12h`, or a date; without a time, the end of that day, in UTC
 * @throws CommandError for another text, or a time in the past
 */
export function parseExpiry (text: string): string {
  const [, number, unit = ''] = /^([1-9][0-9]{0,5})([smhdw])$/.exec(text) ?? []
  const time = number === undefined
    ? Date.parse(/^\d{4}-\d\d-\d\d$/.test(text) ? `${text}T23:59:59Z` : text)
    : Date.now() + Number(number) * (units[unit] ?? 0)
  if (Number.isNaN(time) || (number === undefined && !isDay(text))) {
    throw new CommandError(
      '--expires: expected a duration, such as 90s, 12h or 30d, or a date, such as 2027-01-31, for the end of that ' +
        'day, in UTC', exitCodes.usage
    )
  }
  if (time <= Date.now()) throw new CommandError('--expires: this time is in the past', exitCodes.usage)
  return new Date(time).toISOString()
}
