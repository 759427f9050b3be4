import type { TSchema, Static } from '@sinclair/typebox'
import { serverNameProblem } from '../../schemas/names.ts'
import { problemOf } from '../../schemas/problem.ts'
import { ServerConfig } from '../../schemas/server.ts'
import { BearerKey, Group, SystemConfig, User } from '../../schemas/settings.ts'
import type { Server, Snapshot } from '../store.ts'

const isObject = (value: unknown): value is Record<string, unknown> => typeof value === 'object' && value !== null && !Array.isArray(value)

/** What is wrong with a value, as a phrase. */
function wrong (schema: TSchema, value: unknown): string | undefined {
  const problem = problemOf(schema, value)
  return problem && (problem.path === '' ? problem.message : `"${problem.path}": ${problem.message}`)
}

/** The snapshot that a settings document says. What cannot be used is kept out and reported, never fatal. */
export function toSnapshot (document: Record<string, unknown>, version: number): Snapshot {
  const problems: string[] = []
  const list = <T extends TSchema>(key: string, schema: T): Array<Static<T>> => {
    const value = document[key]
    if (value === undefined || value === null) return []
    if (!Array.isArray(value)) { problems.push(`"${key}" is no list; it is ignored`); return [] }
    return value.filter((each, at) => {
      const problem = wrong(schema, each)
      if (problem !== undefined) problems.push(`"${key}" entry ${at + 1} is ignored: ${problem}`)
      return problem === undefined
    })
  }

  const servers = new Map<string, Server>()
  if (isObject(document.mcpServers)) {
    for (const [name, config] of Object.entries(document.mcpServers)) {
      const problem = serverNameProblem(name) ?? wrong(ServerConfig, config) ?? incomplete(config as ServerConfig)
      if (problem !== undefined) problems.push(`server ${JSON.stringify(name)} is not connected: ${problem}`)
      servers.set(name, { name, config: isObject(config) ? config : {}, problem })
    }
  } else if (document.mcpServers !== undefined) problems.push('"mcpServers" is no object; it is ignored')

  const system = document.systemConfig ?? {}
  const systemProblem = wrong(SystemConfig, system)
  if (systemProblem !== undefined) throw new Error(`"systemConfig" cannot be used: ${systemProblem}`)

  return {
    version,
    servers,
    groups: new Map(list('groups', Group).map(({ servers: members, ...group }) => [group.id, { ...group, members: members.map((member) => typeof member === 'string' ? { name: member } : member) }])),
    keys: new Map(list('bearerKeys', BearerKey).map((key) => [key.id, key])),
    users: new Map(list('users', User).map((user) => [user.username, user])),
    system: system as SystemConfig,
    problems
  }
}

/** What a config of its kind lacks. */
function incomplete ({ type, command, url }: ServerConfig): string | undefined {
  if (type === 'openapi') return 'servers of type "openapi" are not supported yet'
  if (type === 'stdio' || (type === undefined && command !== undefined)) return command ? undefined : 'a stdio server needs a "command"'
  if (!url) return type === undefined ? 'it needs a "command" or a "url"' : `a server of type "${type}" needs a "url"`
  if (!URL.canParse(url) || !/^https?:$/.test(new URL(url).protocol)) return '"url" must be an absolute http or https address'
  return undefined
}
