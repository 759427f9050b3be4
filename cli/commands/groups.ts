import type { Command } from 'commander'
import { withApi, type CommandRun } from '../context.ts'

interface Member { name: string, alias?: string, tools?: 'all' | string[] }
interface Group { id: string, name: string, description?: string, owner?: string, servers: Array<string | Member> }
interface Answer { data: Group, message?: string, warnings?: string[] }

const groupPath = (name: string): string => `/api/groups/${encodeURIComponent(name)}`

const nameOf = (member: string | Member): string => typeof member === 'string' ? member : member.name

/** Registers the commands of `group`, which list and change groups of servers. */
export function addGroupCommands (program: Command, run: CommandRun): void {
  const group = program.command('group').description('groups of servers, each with a route of its own: /mcp/<group>')

  group.command('list')
    .description('the groups, with their servers')
    .action(async (_options, command: Command) => {
      await withApi(run, command, async ({ api, out }) => {
        const groups = await api.get<Group[]>('/api/groups')
        out.writeResult(groups, () => groups.length === 0
          ? 'There are no groups yet: tool-hub group create <name> <server> …'
          : out.formatTable(['NAME', 'SERVERS', 'OWNER', 'DESCRIPTION'], groups
            .map(({ name, servers, owner = '', description = '' }) =>
              [name, servers.map(nameOf).join(', '), owner, description])))
      })
    })

  group.command('create')
    .description('create a group')
    .argument('<name>')
    .argument('[servers...]', 'the servers of the group, with all their items')
    .option('--description <text>')
    .action(async (name: string, servers: string[], { description }: { description?: string }, command: Command) => {
      await changeGroup(
        run, command, 'POST', '/api/groups', { name, servers, ...(description === undefined ? {} : { description }) }
      )
    })

  group.command('add')
    .description('put a server into a group')
    .argument('<group>')
    .argument('<server>')
    .action(async (name: string, serverName: string, _options, command: Command) => {
      await changeGroup(run, command, 'POST', `${groupPath(name)}/servers`, { serverName })
    })

  group.command('remove')
    .description('take a server out of a group; without a server, remove the group')
    .argument('<group>')
    .argument('[server]')
    .action(async (name: string, server: string | undefined, _options, command: Command) => {
      if (server !== undefined) {
        await changeGroup(
          run, command, 'DELETE', `${groupPath(name)}/servers/${encodeURIComponent(server)}`
        )
      } else {
        await withApi(run, command, async ({ api, out }) => {
          const { message } = await api.request<{ message?: string }>('DELETE', groupPath(name))
          out.writeResult({ name, removed: true }, message ?? 'The group was removed')
        })
      }
    })
}

/** Sends a change of a group to the API, and prints the changed group. */
async function changeGroup (
  run: CommandRun, command: Command, method: string, path: string, body?: object
): Promise<void> {
  await withApi(run, command, async ({ api, out }) => {
    const { data, warnings = [] } = await api.request<Answer>(method, path, body)
    const servers = data.servers.map(nameOf).join(', ') || 'no servers'
    out.writeResultWithWarnings(data, warnings, `The group ${JSON.stringify(data.name)} has ${servers}`)
  })
}
