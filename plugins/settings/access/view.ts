import type { Snapshot } from '../../../db/store.ts'

/** The identity of a caller. Made once per request, never changed. */
export interface Principal {
  /** Identifies the principal: sessions are bound to it. */
  readonly key: string
  readonly kind: 'system-key' | 'user-key' | 'access-token' | 'social-session' | 'user' | 'guest' | 'anonymous'
  /** The user by which `isolation: user` separates connections: a key's owner, if it has one. */
  readonly user: string
  /** The stored user whose servers it may see. */
  readonly username?: string
  /** True: it sees every server. */
  readonly isAdmin: boolean
  /**
   * The user who made a system key: what is made with the key has that maker, too. Absent: the operator has, by a file.
   */
  readonly maker?: string
  /** The routes that a scoped credential is limited to; undefined: all. */
  readonly grant?: Grant
  /** The scopes of an access token; undefined for all other credentials, which scopes do not limit. */
  readonly scopes?: readonly string[]
  /**
   * The path of the resource that an access token is for (RFC 8707), without a slash at the end; undefined: all of the
   * gateway.
   */
  readonly audience?: string
  /** The stored credential by which it was identified: a bearer key, or a token. Its sessions end with it. */
  readonly credential?: Credential
  /**
   * The same principal in a later snapshot; undefined when the credential is not valid any more. Absent on bearer keys
   * of MCP routes.
   */
  readonly standing?: (snapshot: Snapshot) => Principal | undefined
}

/** The scope of an access token that MCP needs. */
export const mcpScope = 'mcp'

/** Whether a principal may use MCP, and run tools and prompts: only an access token may lack the scope for it. */
export const mayRun = ({ scopes }: Principal): boolean => scopes?.includes(mcpScope) ?? true

/** A stored credential, without its secret. */
export interface Credential { readonly id: string, readonly name?: string }

/** The routes that a scoped bearer key is limited to. */
export interface Grant {
  readonly accessType: 'groups' | 'servers' | 'custom'
  readonly groups: readonly string[]
  readonly servers: readonly string[]
}

/**
 * A set of servers. `open`: on the routes that need no credentials, where public servers are added to the caller's own.
 */
export type Scope = { readonly open?: boolean } & (
  | { readonly kind: 'global' }
  // `byName`: the route names the group by its name, which `enableGroupNameRoute` may end.
  | { readonly kind: 'group', readonly id: string, readonly name: string, readonly byName?: boolean }
  | { readonly kind: 'server', readonly name: string }
)

/**
 * The way in which items are shown: under the `raw` names of one server, `merged` under qualified names, or by `search`
 * (`$smart`).
 */
export type PresentationName = 'raw' | 'merged' | 'search'

/** A principal, a set of servers, and the way in which they are shown. Views with the same key see the same. */
export interface View {
  readonly principal: Principal
  readonly scope: Scope
  readonly presentation: PresentationName
  readonly key: string
}

export function makeView (
  principal: Principal,
  scope: Scope,
  presentation: PresentationName = scope.kind === 'server' ? 'raw' : 'merged'
): View {
  return {
    principal,
    scope,
    presentation,
    key: JSON
      .stringify([...whoSees(principal, scope), ...whereSeen(scope), presentation])
  }
}

const others = new WeakMap<View, Map<PresentationName, View>>()

/** A view of the same servers by the same principal, shown in another way. The object stays the same. */
export function inPresentation (view: View, presentation: PresentationName): View {
  if (view.presentation === presentation) return view
  let made = others.get(view)
  if (!made) others.set(view, made = new Map())
  let other = made.get(presentation)
  if (!other) made.set(presentation, other = makeView(view.principal, view.scope, presentation))
  return other
}

/**
 * Everything about a principal that decides what it sees (`shows` in visibility.ts), and nothing else, so that
 * principals that see the same share surfaces. An input of that decision that were missing here would show one
 * principal what another one sees.
 */
function whoSees ({ kind, isAdmin, username, grant }: Principal, { open = false }: Scope): unknown[] {
  const everything = isAdmin ? 'all' : username === undefined ? 'anyone' : ['user', username]
  // On routes that need a credential, the scope of a key decides about the route (`admits`), not about the servers
  // behind it.
  if (!open || (isAdmin && grant === undefined)) return [everything]
  return ['open', everything, kind === 'anonymous', grant === undefined ? null : grantText(grant)]
}

const grantTexts = new WeakMap<Grant, string>()

/** A grant as text. Grants are never changed in place, and may list thousands of names, so the text is kept. */
function grantText (grant: Grant): string {
  let text = grantTexts.get(grant)
  if (text === undefined) grantTexts.set(grant, text = JSON.stringify([grant.accessType, grant.groups, grant.servers]))
  return text
}

function whereSeen (scope: Scope): string[] {
  switch (scope.kind) {
    case 'global': return ['global']
    case 'group': return ['group', scope.id]
    case 'server': return ['server', scope.name]
  }
}
