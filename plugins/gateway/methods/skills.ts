import { hasExtension, skillsExtension, type ServerCapabilities } from '../../../protocol/capabilities.ts'
import { rpcCode, RpcError } from '../../../protocol/errors.ts'
import { DerivedExchange, type Exchange } from '../../../protocol/exchange.ts'
import { elementsOf, isObject, memberOf, parseSmallMember, withMembers } from '../../../protocol/json.ts'
import { skillFileUris } from '../../../protocol/skills.ts'
import { overrideOf, type View } from '../../settings/index.ts'
import { isSelectedAndEnabled, type ViewSection, type ItemTarget } from '../section.ts'
import { stringParam, unknownFolderError, unknownSkillError } from '../resolve.ts'
import { isResourceHidden } from '../surface.ts'
import { resolveOrFailCall } from './items.ts'
import type { GatewayParts, MethodHandler } from './method.ts'

/**
 * Handles `skills/get`: returns the server's current entry of a skill. A description in the server's config is added as
 * a member of the entry; the frontmatter is not changed, since clients compare it with the file.
 */
export const getSkill: MethodHandler = async (parts, exchange) => {
  const uri = stringParam(exchange, 'uri', 'a URI')
  const { section, key } =
    await resolveOrFailCall(parts, exchange, uri, async () => await findSkill(parts, exchange, uri))
  const result = await parts.forwarder.send(exchange, section.server.name, key, { uri: JSON.stringify(key) })
  const description = overrideOf(section.server, 'skills', key)?.description
  const skill = memberOf(result, 'skill')
  if (description === undefined || skill?.startsWith('{') !== true) return result
  return withMembers(result, { skill: withMembers(skill, { description: JSON.stringify(description) }) })
}

/** Finds the server that lists a skill, or else the server from which its file can be read. @throws RpcError */
async function findSkill (
  { resolver, surfaces }: GatewayParts, exchange: Exchange<View>, uri: string
): Promise<{ section: ViewSection, key: string }> {
  const target = await resolver.find(exchange, ({ parts }) => parts.skills.targets.get(uri)) ??
    await readerOrUndefined(resolver.findResource(exchange))
  const section = target && surfaces.section(exchange.view, exchange.client, target.provider)
  if (section && hasSkills(section) && isSelectedAndEnabled(section, 'skills', uri)) return { section, key: uri }
  throw hasExtension(surfaces.of(exchange.view, exchange.client).announced, skillsExtension)
    ? unknownSkillError(uri)
    : new RpcError(rpcCode.methodNotFound, `Method not found: ${exchange.method}`)
}

/**
 * Handles `resources/directory/read`: lists a folder. On merged routes, the folders of a server that does not support
 * this method are derived from the entries of its skills.
 */
export const readDirectory: MethodHandler = async (parts, exchange) => {
  const { resolver, surfaces, forwarder } = parts
  const { view, client } = exchange
  const folder = stringParam(exchange, 'uri', 'a URI').replace(/\/$/, '')
  const unknown = unknownFolderError(folder)
  const inside = { ...exchange.params, uri: `${folder}/` }
  const target = await readerOrUndefined(resolver.findResource(
    new DerivedExchange(exchange, { view, params: inside, paramsText: JSON.stringify(inside) })
  ))
  if (!target) throw unknown
  const surface = surfaces.of(view, client)
  const isShown = (child: string): boolean => !isResourceHidden(surface, target.provider, child)
  if (view.scope.kind !== 'server' && !readsDirectories(surface.capabilities.get(target.provider))) {
    const items = [...surface.parts.skills.targets.values()]
      .flatMap(({ provider, item }) => item && provider === target.provider ? [item] : [])
    const children = childrenIn(items.flatMap(skillFileUris).filter(isShown), folder)
    if (children.length === 0) throw unknown
    return JSON.stringify({ resources: children })
  }
  const result = await forwarder.send(exchange, target.provider, folder)
  const listed = elementsOf(memberOf(result, 'resources') ?? '[]')
  const shown = listed.filter((text) => {
    const uri = text.startsWith('{') ? parseSmallMember(text, 'uri') : undefined
    return typeof uri !== 'string' || isShown(uri)
  })
  return shown.length === listed.length ? result : withMembers(result, { resources: `[${shown.join()}]` })
}

/**
 * Lists the files and folders directly in a folder, as resources.
 * @param files the URIs of files; those outside the folder are ignored
 * @param folder the URI of the folder, without a trailing slash
 */
export function childrenIn (files: readonly string[], folder: string): object[] {
  const names = new Map<string, boolean>()
  for (const file of files) {
    if (!file.startsWith(`${folder}/`)) continue
    const [name = '', ...below] = file.slice(folder.length + 1).split('/')
    names.set(name, below.length > 0)
  }
  return [...names].map(([name, isFolder]) =>
    ({ uri: `${folder}/${name}`, name, ...(isFolder && { mimeType: 'inode/directory' }) }))
}

const readsDirectories = (capabilities: ServerCapabilities | undefined): boolean => {
  const extensions = capabilities?.extensions
  const skills = isObject(extensions) ? extensions[skillsExtension] : undefined
  return isObject(skills) && skills.directoryRead === true
}

const hasSkills = ({ catalogue }: ViewSection): boolean =>
  catalogue !== undefined && hasExtension(catalogue.capabilities, skillsExtension)

/** Awaits the result of `findResource`; returns undefined if the view shows no such resource. */
async function readerOrUndefined (found: Promise<ItemTarget>): Promise<ItemTarget | undefined> {
  try {
    return await found
  } catch (error) {
    if (error instanceof RpcError && error.reason === 'unknown-resource') return undefined
    throw error
  }
}
