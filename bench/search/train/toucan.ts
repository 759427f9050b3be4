import { execFile } from 'node:child_process'
import { mkdir, readdir, readFile, rm } from 'node:fs/promises'
import { join } from 'node:path'
import { promisify } from 'node:util'
import { isObject } from '../../../protocol/json.ts'
import { licences, type Definition, type Source } from './sources.ts'

const run = promisify(execFile)
const folder = 'mcp_servers'

/** The parts of a file of the collection that are read. `tools` differ in form: `input_schema` is of a server itself. */
interface Listed { name?: unknown, description?: unknown, input_schema?: { properties?: unknown } }
interface ServerFile {
  metadata: {
    server_info_crawled?: { license?: string, tools?: Listed[] | null } | null
    remote_server_response: { tools: Listed[] }
  }
}

/**
 * The tools that TheAgentArk/Toucan (MIT) lists, of the servers that state a licence that allows it.
 * @param origin the address or the path of the repository
 */
export async function toucan (cache: string, origin: string, version: string): Promise<Source> {
  const [repository, files] = [join(cache, 'toucan.git'), join(cache, 'toucan')]
  for (const before of [repository, files]) await rm(before, { recursive: true, force: true })
  await mkdir(files, { recursive: true })
  await run('git', ['clone', '--quiet', '--bare', origin, repository])
  const archive = join(cache, 'toucan.tar')
  await run('git', ['-C', repository, 'archive', '--output', archive, version, folder])
  await run('tar', ['-xf', archive, '-C', files])
  const definitions: Definition[] = []
  for (const name of (await readdir(join(files, folder))).sort()) {
    const { metadata } = JSON.parse(await readFile(join(files, folder, name), 'utf8')) as ServerFile
    const { server_info_crawled: crawled, remote_server_response: { tools } } = metadata
    if (!licences.has(crawled?.license ?? '')) continue
    for (const tool of tools.length > 0 ? tools : crawled?.tools ?? []) definitions.push(...definitionOf(tool))
  }
  return { name: 'TheAgentArk/Toucan', kind: 'git', version, licence: 'MIT', definitions }
}

/** A tool as a definition; none where the description is that of a page around it. */
function definitionOf ({ name, description, input_schema: schema }: Listed): Definition[] {
  if (typeof name !== 'string' || typeof description !== 'string') return []
  if (/^(?:Deploy Server|Description not available)/.test(description)) return []
  return [{ name, description, parameters: isObject(schema?.properties) ? Object.keys(schema.properties) : [] }]
}
