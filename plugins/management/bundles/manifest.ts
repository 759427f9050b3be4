import { isUtf8 } from 'node:buffer'
import { isDeeperThan, isObject } from '../../../protocol/json.ts'
import { withoutMark } from '../../../protocol/text.ts'
import { BundleManifest } from '../../../schemas/bundle.ts'
import { nameProblem } from '../../../schemas/names.ts'
import { problemOf } from '../../../schemas/problem.ts'
import { limits } from '../../base/limits/index.ts'
import { ArchiveError } from './archive/archive.ts'

/**
 * Reads the manifest of a bundle (MCPB, versions 0.1 to 0.4).
 * @throws ArchiveError that says which member is wrong
 */
export function readManifest (bytes: Buffer): BundleManifest {
  const refuse = (reason: string): never => { throw new ArchiveError(`its manifest.json ${reason}`) }
  if (!isUtf8(bytes)) refuse('is not UTF-8 text')
  const text = withoutMark(bytes.toString())
  if (isDeeperThan(text, limits.requestDepth)) refuse(`is nested deeper than ${limits.requestDepth} levels`)
  const manifest = parse(text)
  if (!isObject(manifest)) return refuse('is no JSON object')
  const problem = problemOf(BundleManifest, manifest)
  if (problem) refuse(`is not valid: ${problem.path === '' ? '' : `"${problem.path}": `}${problem.message}`)
  const valid = manifest as BundleManifest
  if (valid.manifest_version === undefined && valid.dxt_version === undefined) refuse('has no "manifest_version"')
  const { type, mcp_config: start } = valid.server
  if (start === undefined && type !== 'uv') refuse('has no "server.mcp_config", which only the type "uv" may leave out')
  const reason = bundleNameProblem(valid.name)
  if (reason !== undefined) refuse(`has a "name" that cannot be used: ${reason}`)
  return valid
}

function parse (text: string): unknown {
  try {
    return JSON.parse(text)
  } catch {
    return undefined
  }
}

/** The reason why a bundle must not have this name, as a clause; undefined: it may. A valid one can be the name of a server, too. */
export function bundleNameProblem (name: string): string | undefined {
  if (!/^[A-Za-z0-9._-]{1,64}$/.test(name)) return 'it must have 1 to 64 letters, digits, ".", "_" and "-"'
  return nameProblem(name)
}
