// The rules for the HTML of every page. A rule that is off or weaker has its reason here.
export default {
  root: true,
  extends: ["html-validate:standard", "html-validate:a11y"],
  rules: {
    // Every script and style sheet is a file of this site; nothing comes from elsewhere.
    "require-sri": "off",
    // Sphinx writes captions of the navigation as paragraphs with the role and the level
    // of a heading, and the theme's style sheet knows the content by its role.
    "prefer-native-element": ["error", { exclude: ["heading", "main"] }],
  },
};
