// The labels by which records of more than one collection are selected.
export const clientLabel = (clientId: string): string => `client:${clientId}`
export const userLabel = (username: string): string => `user:${username}`
