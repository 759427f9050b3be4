import { isObject } from '../../../protocol/json.ts'
import { adopt } from '../../../schemas/foreign-config.ts'
import { problemOf } from '../../../schemas/problem.ts'
import { GroupMember } from '../../../schemas/settings.ts'
import type { SentTemplate } from '../../../schemas/templates.ts'
import { Template, TemplateGroup } from '../../../schemas/templates.ts'
import { isComment, quoteName } from '../../../schemas/unknown-members.ts'
import { errors } from '../../base/errors/index.ts'
import { leftOut, portable } from './config.ts'

type Json = Record<string, unknown>

/** Max warnings about one item of a template. */
const mostWarnings = 20

/** The names of a value's members that are not known. Comments are no members. */
const unknownIn = (value: Readonly<Json>, known: Readonly<Json>): string[] =>
  Object.keys(value).filter((name) => !Object.hasOwn(known, name) && !isComment(name))

const capped = (warnings: Iterable<string>): string[] => [...new Set(warnings)].slice(0, mostWarnings)

/** Warnings about the members of a sent template itself that are not known. */
export function warningsOf (template: SentTemplate): string[] {
  const known = Object.keys(Template.properties).map((name) => `"${name}"`).join(', ')
  return capped(unknownIn(template, Template.properties).map((name) =>
    `${quoteName(name)} is not known and has no effect; a template has ${known}`))
}

/**
 * Reads one server of a template, which may be written as another program has it.
 * @returns its config as it may be stored here, and warnings about the members that have no effect
 * @throws InvalidInput
 */
export function readServer (name: string, value: unknown): { config: Json, warnings: string[] } {
  if (name === '') throw new errors.InvalidInput('A server needs a name: the member of "servers" that holds its config')
  if (!isObject(value)) {
    throw new errors.InvalidInput('A server is an object, its config: {"url": "…"}, or {"command": "…", "args": ["…"]}')
  }
  const { config, warnings } = adopt(value)
  const dropped = leftOut(config).map((path) => `${quoteName(path)} is not taken from a template`)
  return { config: portable(config), warnings: capped([...dropped, ...warnings]) }
}

/**
 * Reads one group of a template.
 * @returns the group, and warnings about the members that have no effect
 * @throws InvalidInput, with a message about the first member that is wrong
 */
export function readGroup (value: unknown): { group: TemplateGroup, warnings: string[] } {
  if (!isObject(value)) throw new errors.InvalidInput('A group is an object: {"name": "…", "servers": ["…"]}')
  if (value.name === undefined) throw new errors.InvalidInput('"name" is missing: a group needs one')
  if (value.servers === undefined) throw new errors.InvalidInput('"servers" is missing: list the names of its servers, or [] for none')
  const wrong = problemOf(TemplateGroup, value)
  if (wrong) throw new errors.InvalidInput(memberProblem(value.servers) ?? `"${wrong.path}": ${wrong.message}`)
  const group = value as TemplateGroup
  const ofMembers = group.servers.flatMap((member, at) =>
    typeof member === 'string' ? [] : unknownIn(member, GroupMember.properties).map((name) => `servers.${at}.${name}`))
  const unknown = [...unknownIn(value, TemplateGroup.properties), ...ofMembers]
  return { group, warnings: capped(unknown.map((path) => `${quoteName(path)} is not known and has no effect`)) }
}

/** A message about the first wrong member of a group; undefined: none is wrong. */
function memberProblem (servers: unknown): string | undefined {
  if (!Array.isArray(servers)) return '"servers": expected a list of names'
  for (const [at, member] of servers.entries()) {
    if (typeof member === 'string' && member !== '') continue
    const wrong = isObject(member) && typeof member.name === 'string' ? problemOf(GroupMember, member) : undefined
    if (wrong) {
      const isSelection = wrong.path !== 'name' && wrong.path !== 'alias'
      return `"servers.${at}.${wrong.path}": ${isSelection ? 'expected "all", or a list of names' : wrong.message}`
    }
    if (!isObject(member) || typeof member.name !== 'string') {
      return `"servers.${at}": expected the name of a server, or {"name": "…", "tools": ["…"]}`
    }
  }
  return undefined
}
