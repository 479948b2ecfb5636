// What the console knows while it is open: key, tenant, connection. The key stays in this tab.

/**
 * @typedef {object} State
 * @property {string} key
 * @property {string} sitting id of the key, where the console made it for this sitting
 * @property {string} tenant
 * @property {string} subTenant
 * @property {boolean | null} isAdmin whether the key may list tenants; null while unknown
 * @property {string} mode of the tenant: standard or embeddings
 * @property {"up" | "down"} connection
 * @property {string} warning of the server: a full disk, damaged parts
 */

const events = new EventTarget();

/** @type {State} */
export const state = {
  key: read("key"),
  sitting: read("sitting"),
  tenant: read("tenant"),
  subTenant: read("sub"),
  isAdmin: null,
  mode: "standard",
  connection: "up",
  warning: read("warning"),
};
write("warning", "");

/** @param {string} name */
function read(name) {
  try {
    return sessionStorage.getItem(`lodestone.${name}`) ?? "";
  } catch {
    return "";
  }
}

/**
 * @param {string} name
 * @param {string} value
 */
function write(name, value) {
  try {
    sessionStorage.setItem(`lodestone.${name}`, value);
  } catch {
    // Without storage the key lives as long as the page.
  }
}

/**
 * Changes the state and tells who listens for what changed.
 * @param {Partial<State>} change
 */
export function update(change) {
  const keys = /** @type {(keyof State)[]} */ (Object.keys(change));
  const changed = keys.filter((name) => state[name] !== change[name]);
  if (changed.length === 0) return;
  Object.assign(state, change);
  write("key", state.key);
  write("sitting", state.sitting);
  write("tenant", state.tenant);
  write("sub", state.subTenant);
  for (const name of changed) events.dispatchEvent(new Event(name));
}

/**
 * @param {keyof State} name
 * @param {() => void} listener
 */
export function listen(name, listener) {
  events.addEventListener(name, listener);
}

/** Keeps a warning for the page that is loaded next. @param {string} text */
export function warnNext(text) {
  write("warning", text);
}

/** The scope as members of a request. */
export function scope() {
  return { tenant_id: state.tenant, sub_tenant_id: state.subTenant };
}
